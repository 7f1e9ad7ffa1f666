//! `CL.THROTTLE key max_burst count period [quantity]`, as redis-cell answers it, and
//! `TOLLGATE.ALLOW`, which asks the same of the same counters and is answered with yes or no.

use tollgate::{Ask, Decision, Period, Quota, Unit};

use crate::door::Name;
use crate::resp::frame::integer;
use crate::resp::reply::Replies;
use crate::resp::rules::seconds;
use crate::service::Service;

/// What one command asks for.
pub(crate) type Asked<'a> = Ask<&'a [u8]>;

/// How much of a decision is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// `CL.THROTTLE`: five numbers.
    #[default]
    Numbers,
    /// `TOLLGATE.ALLOW`: 1 or 0.
    YesOrNo,
}

impl Form {
    const fn command(self) -> &'static str {
        match self {
            Self::Numbers => "CL.THROTTLE",
            Self::YesOrNo => "TOLLGATE.ALLOW",
        }
    }
}

/// What the arguments ask for, the first being the command's name, or what is wrong with them.
#[inline]
pub(crate) fn read<'a>(arguments: &[&'a [u8]]) -> Result<Asked<'a>, Wrong> {
    let (key, burst, count, period, quantity) = match arguments {
        [_, key, burst, count, period] => (*key, *burst, *count, *period, None),
        [_, key, burst, count, period, quantity] => {
            (*key, *burst, *count, *period, Some(*quantity))
        }
        _ => return Err(Wrong::Arity),
    };
    let max_burst = whole(burst, 0).ok_or(Wrong::MaxBurst)?;
    let count = whole(count, 1).ok_or(Wrong::Count)?;
    let period = whole(period, 1).and_then(|period| u32::try_from(period).ok());
    let period = period.ok_or(Wrong::Period)?;
    let cost = match quantity {
        None => 1,
        Some(text) => whole(text, 0).ok_or(Wrong::Quantity)?,
    };
    let period = Period::new(period, Unit::Second).map_err(|_| Wrong::Period)?;
    let quota = Quota::new(count, period).map_err(|_| Wrong::Count)?;
    let quota = quota.with_burst(max_burst.saturating_add(1)).map_err(|_| Wrong::MaxBurst)?;
    Ok(Ask { key, quota, cost })
}

/// Decides all of them, and answers each in this form.
#[inline]
pub(crate) fn decide(
    service: &Service,
    form: Form,
    asked: &[Asked<'_>],
    replies: &mut Replies<'_>,
) {
    service.throttle(Name::Resp, asked, |answer| match (answer, form) {
        (Ok(decision), Form::Numbers) => tell(&decision, replies),
        (Ok(decision), Form::YesOrNo) => replies.yes_or_no(decision.is_allowed()),
        (Err(error), _) => replies.error(&format!("ERR {}: {error}", form.command())),
    });
}

/// Answers a command that is wrong, and does nothing else.
#[cold]
pub(crate) fn refuse(form: Form, wrong: Wrong, replies: &mut Replies<'_>) {
    let command = form.command();
    match wrong {
        // As Redis begins it.
        Wrong::Arity => replies.error(&format!(
            "ERR wrong number of arguments for '{}' command: {command} {wrong}",
            command.to_ascii_lowercase()
        )),
        _ => replies.error(&format!("ERR {command}: {wrong}")),
    }
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

/// What is wrong with the arguments. Whoever sent them is at fault, and nothing was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Wrong {
    #[error("key max_burst count period [quantity]")]
    Arity,
    #[error("max_burst must be a whole number from 0 on, less than 10^15")]
    MaxBurst,
    #[error("count must be a whole number from 1 to 10^15")]
    Count,
    #[error("period must be a whole number of seconds, from 1 to 31622400, which are 366 days")]
    Period,
    #[error("quantity must be a whole number from 0 on")]
    Quantity,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<String, Wrong> {
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
            ("c", Wrong::Arity),
            ("c k 1 1", Wrong::Arity),
            ("c k 1 1 1 1 1", Wrong::Arity),
            ("c k -1 1 1", Wrong::MaxBurst),
            ("c k x 1 1", Wrong::MaxBurst),
            ("c k 9223372036854775807 1 1", Wrong::MaxBurst),
            ("c k 1 0 1", Wrong::Count),
            ("c k 1 -5 1", Wrong::Count),
            ("c k 1 1.5 1", Wrong::Count),
            ("c k 1 9223372036854775807 1", Wrong::Count),
            ("c k 1 1 0", Wrong::Period),
            ("c k 1 1 4294967297", Wrong::Period),
            ("c k 1 1 31622401", Wrong::Period),
            ("c k 1 1 1 -1", Wrong::Quantity),
            ("c k 1 1 1 9223372036854775808", Wrong::Quantity),
        ] {
            assert_eq!(asked(line), Err(error), "{line}");
        }
    }
}
