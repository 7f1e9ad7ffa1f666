//! The laws of permits, against a list of everybody who holds one.

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Permit, Permits, Retry, Tick};

use crate::trace;

#[derive(Clone, Copy, Debug)]
enum Deed {
    Acquire,
    /// Somebody returns, who may have returned before, or whose permit may have expired.
    Return(u16),
    Wait(u64),
    Back(u64),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let one = any::<u32>().prop_map(|number| match number % 8 {
        0..4 => Deed::Acquire,
        4 | 5 => Deed::Return((number >> 8) as u16),
        6 => Deed::Wait(u64::from(number >> 8)),
        _ => Deed::Back(u64::from(number >> 8)),
    });
    prop::collection::vec(one, 1..120)
}

fn spans() -> impl Strategy<Value = Option<Duration>> {
    prop::option::of((0..1u64 << 26).prop_map(Duration::from_nanos))
}

/// A permit that was given out, and not returned.
struct Holder {
    permit: Permit,
    since: Tick,
}

proptest! {
    #![proptest_config(trace::cases(4))]

    #[test]
    fn never_more_are_out_than_allowed(
        max in 1..6u32, span in spans(), start in trace::starts(), deeds in deeds(),
    ) {
        run(max, |_| span, start, &deeds)?;
    }

    #[test]
    fn the_time_to_expire_holds_for_all_that_are_out_however_it_changes(
        max in 1..6u32,
        spans in prop::collection::vec(spans(), 120),
        start in trace::starts(),
        deeds in deeds(),
    ) {
        run(max, |index| spans[index], start, &deeds)?;
    }
}

/// A permit is given whenever fewer than `max` are out.
fn run(
    max: u32,
    span: impl Fn(usize) -> Option<Duration>,
    start: Tick,
    deeds: &[Deed],
) -> Result<(), TestCaseError> {
    let limit = NonZeroU32::new(max).unwrap();
    let (mut permits, mut now, mut latest) = (Permits::default(), start, start);
    let (mut holders, mut given) = (Vec::<Holder>::new(), Vec::new());
    let monotonic = !deeds.iter().any(|deed| matches!(deed, Deed::Back(_)));
    for (index, deed) in deeds.iter().enumerate() {
        match deed {
            Deed::Acquire => {
                // In nanoseconds, which may be beyond the last tick.
                let end = |one: &Holder, span: Duration| {
                    u128::from(one.since.as_nanos()) + span.as_nanos()
                };
                let is_out = |one: &Holder, span| end(one, span) > u128::from(latest.as_nanos());
                holders.retain(|one| span(index).is_none_or(|span| is_out(one, span)));
                match permits.acquire(limit, span(index), now) {
                    Ok(permit) => {
                        prop_assert!(holders.len() < max as usize, "{max} are out already");
                        given.push(permit);
                        holders.push(Holder { permit, since: now });
                    }
                    Err(denied) => {
                        prop_assert_eq!(denied.retry(), Some(Retry::OnReturn));
                        prop_assert_eq!((denied.limit(), denied.remaining()), (u64::from(max), 0));
                        prop_assert!(holders.len() == max as usize || !monotonic);
                    }
                }
            }
            Deed::Return(who) if !given.is_empty() => {
                let permit = given[usize::from(*who) % given.len()];
                let held = holders.iter().any(|one| one.permit == permit);
                prop_assert!(permits.give_back(permit) || !held);
                prop_assert!(!permits.give_back(permit), "it came back already");
                holders.retain(|one| one.permit != permit);
            }
            Deed::Return(_) => {}
            Deed::Wait(nanos) => now = now.after(Duration::from_nanos(*nanos)),
            Deed::Back(nanos) => now = trace::earlier(now, Duration::from_nanos(*nanos)),
        }
        latest = latest.max(now);
    }
    Ok(())
}

/// All permits had expired at once at the last tick, where the clock stands still.
#[test]
fn a_clock_at_its_end_gives_no_permit_back() {
    let (one, minute) = (NonZeroU32::MIN, Some(Duration::from_secs(60)));
    let mut permits = Permits::default();
    assert!(permits.acquire(one, minute, Tick::MAX).is_ok());
    assert!(permits.acquire(one, minute, Tick::MAX).is_err());
    assert_eq!(permits.out(minute, Tick::MAX), 1);
    assert!(!permits.is_at_rest(minute, Tick::MAX));
}

#[test]
fn a_permit_is_out_until_the_moment_it_expires() {
    let (one, second) = (NonZeroU32::MIN, Some(Duration::from_secs(1)));
    let mut permits = Permits::default();
    let lost = permits.acquire(one, second, Tick::ZERO).unwrap();
    assert!(permits.acquire(one, second, Tick::from_nanos(999_999_999)).is_err());
    assert!(permits.acquire(one, second, Tick::from_nanos(1_000_000_000)).is_ok());
    assert!(!permits.give_back(lost), "it has expired");
    assert_eq!(permits.out(second, Tick::from_nanos(1_000_000_000)), 1);
}
