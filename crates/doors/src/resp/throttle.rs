//! `CL.THROTTLE key max_burst count period [quantity]`, as redis-cell answers it.

use tollgate::{Ask, Decision, Period, Quota, Unit};

use crate::door::Name;
use crate::resp::frame::integer;
use crate::resp::reply::Replies;
use crate::resp::rules::seconds;
use crate::service::Service;

/// What one command asks for.
pub(crate) type Asked<'a> = Ask<&'a [u8]>;

/// What the arguments ask for, the first being the command's name, or what is wrong with them.
#[inline]
pub(crate) fn read<'a>(arguments: &[&'a [u8]]) -> Result<Asked<'a>, &'static str> {
    let (key, burst, count, period, quantity) = match arguments {
        [_, key, burst, count, period] => (*key, *burst, *count, *period, None),
        [_, key, burst, count, period, quantity] => {
            (*key, *burst, *count, *period, Some(*quantity))
        }
        _ => return Err(USAGE),
    };
    let max_burst = whole(burst, 0).ok_or(MAX_BURST)?;
    let count = whole(count, 1).ok_or(COUNT)?;
    let period = whole(period, 1).and_then(|period| u32::try_from(period).ok()).ok_or(PERIOD)?;
    let cost = match quantity {
        None => 1,
        Some(text) => whole(text, 0).ok_or(QUANTITY)?,
    };
    let period = Period::new(period, Unit::Second).map_err(|_| PERIOD)?;
    let quota = Quota::new(count, period).map_err(|_| COUNT)?;
    let quota = quota.with_burst(max_burst.saturating_add(1)).map_err(|_| MAX_BURST)?;
    Ok(Ask { key, quota, cost })
}

/// Decides all of them, and answers each.
#[inline]
pub(crate) fn decide(service: &Service, asked: &[Asked<'_>], replies: &mut Replies<'_>) {
    service.throttle(Name::Resp, asked, |answer| match answer {
        Ok(decision) => tell(&decision, replies),
        Err(error) => replies.error(&format!("ERR CL.THROTTLE: {error}")),
    });
}

#[inline]
fn tell(decision: &Decision, replies: &mut Replies<'_>) {
    // No limit is beyond what fits.
    replies.five([
        i64::from(!decision.is_allowed()),
        decision.limit() as i64,
        decision.remaining() as i64,
        decision.retry_after().map_or(-1, seconds),
        seconds(decision.reset_after()),
    ]);
}

#[inline]
fn whole(text: &[u8], least: u64) -> Option<u64> {
    let number = u64::try_from(integer(text)?).ok()?;
    (number >= least).then_some(number)
}

const USAGE: &str = "ERR wrong number of arguments for 'cl.throttle' command: \
                     CL.THROTTLE key max_burst count period [quantity]";
const MAX_BURST: &str = "ERR CL.THROTTLE: max_burst must be a whole number from 0 on, \
                         less than 10^15";
const COUNT: &str = "ERR CL.THROTTLE: count must be a whole number from 1 to 10^15";
const PERIOD: &str = "ERR CL.THROTTLE: period must be a whole number of seconds, \
                      from 1 to 31622400, which are 366 days";
const QUANTITY: &str = "ERR CL.THROTTLE: quantity must be a whole number from 0 on";

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<String, &'static str> {
        let words: Vec<_> = line.split_whitespace().map(str::as_bytes).collect();
        read(&words).map(|ask| format!("{} x {}", ask.quota, ask.cost))
    }

    #[test]
    fn arguments_are_a_quota_and_a_cost() {
        assert_eq!(asked("c k 15 30 60").as_deref(), Ok("30/60s burst 16 x 1"));
        assert_eq!(asked("c k 0 1 1 0").as_deref(), Ok("1/s burst 1 x 0"));
        assert_eq!(asked("c k 2 1 10 5").as_deref(), Ok("1/10s burst 3 x 5"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, error) in [
            ("c", USAGE),
            ("c k 1 1", USAGE),
            ("c k 1 1 1 1 1", USAGE),
            ("c k -1 1 1", MAX_BURST),
            ("c k x 1 1", MAX_BURST),
            ("c k 9223372036854775807 1 1", MAX_BURST),
            ("c k 1 0 1", COUNT),
            ("c k 1 -5 1", COUNT),
            ("c k 1 1.5 1", COUNT),
            ("c k 1 9223372036854775807 1", COUNT),
            ("c k 1 1 0", PERIOD),
            ("c k 1 1 4294967297", PERIOD),
            ("c k 1 1 31622401", PERIOD),
            ("c k 1 1 1 -1", QUANTITY),
            ("c k 1 1 1 9223372036854775808", QUANTITY),
        ] {
            assert_eq!(asked(line), Err(error), "{line}");
        }
    }
}
