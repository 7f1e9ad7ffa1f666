//! Law: never more is admitted than the algorithm's bound, even if the clock stumbles.

use proptest::prelude::*;
use tollgate_core::{Rate, Tick};

use crate::fraction::Fraction;
use crate::model;
use crate::subject::{self, Kind, Subject};
use crate::trace::{self, Request};

proptest! {
    #![proptest_config(trace::cases(4))]

    #[test]
    fn a_bucket_admits_at_most_burst_and_rate_times_time(
        subject in subject::buckets(), start in trace::starts(), requests in trace::stumbling(60),
    ) {
        let admitted = admitted(&subject, start, &requests)?;
        obeys_bucket(&admitted, subject.rate(), subject.capacity())?;
    }

    #[test]
    fn a_regular_window_admits_at_most_its_limit(
        subject in subject::of(&[Kind::Fixed, Kind::Jittered]),
        start in trace::starts(),
        requests in trace::stumbling(60),
    ) {
        fits_model(&subject, start, &requests)?;
    }

    #[test]
    fn a_sliding_counter_admits_only_what_the_estimate_leaves(
        subject in subject::of(&[Kind::Sliding]), start in trace::starts(), requests in trace::stumbling(60),
    ) {
        fits_model(&subject, start, &requests)?;
        per_window(&subject, &admitted(&subject, start, &requests)?)?;
    }
}

/// When, and how much.
pub(crate) type Admission = (u64, u64);

fn admitted(
    subject: &Subject,
    start: Tick,
    requests: &[Request],
) -> Result<Vec<Admission>, TestCaseError> {
    let mut admitted = Vec::new();
    trace::walk(subject, start, requests, |visit| {
        if visit.spent() {
            admitted.push((visit.now.as_nanos(), visit.cost));
        }
        Ok(())
    })?;
    Ok(admitted)
}

/// Every stretch of the trace, from any admission to any later one, keeps the bound of the quota.
/// At the rate that the bucket keeps, it does so even if the time from the one to the other is
/// negative, because the clock ran backwards: then less than the burst has passed.
pub(crate) fn obeys_bucket(
    admitted: &[Admission],
    rate: Rate,
    burst: u64,
) -> Result<(), TestCaseError> {
    let (said, kept) = (Fraction::said(rate), Fraction::kept(rate));
    for (index, (from, _)) in admitted.iter().enumerate() {
        let mut spent = 0;
        for (to, cost) in &admitted[index..] {
            spent += u128::from(*cost);
            prop_assert!(
                said.covers(spent, burst, *from, *to.max(from))
                    && kept.covers(spent, burst, *from, *to),
                "{spent} passed between {from} and {to}: {admitted:?}"
            );
        }
    }
    Ok(())
}

/// The model refuses to spend what it does not have. A request whose clock is behind the window
/// of the last admission counts as one at the beginning of that window.
fn fits_model(subject: &Subject, start: Tick, requests: &[Request]) -> Result<(), TestCaseError> {
    let mut model = model::of(subject);
    let mut opened = 0;
    trace::walk(subject, start, requests, |visit| {
        if visit.spent() {
            let at = visit.now.as_nanos().max(opened);
            model.spend(at, visit.cost);
            opened = begin_of_window(subject, at);
        }
        Ok(())
    })?;
    Ok(())
}

/// The beginning of the window that a tick lies in, or the first tick of all.
fn begin_of_window(subject: &Subject, tick: u64) -> u64 {
    let shift = match subject.kind {
        Kind::Jittered => i128::from(subject.phase.0),
        _ => 0,
    };
    let wall = i128::from(tick) + subject.origin() - shift;
    let begin = i128::from(tick) - wall.rem_euclid(i128::from(subject.period()));
    u64::try_from(begin).unwrap_or(0)
}

/// A sliding counter keeps the limit in each aligned window as well.
pub(crate) fn per_window(subject: &Subject, admitted: &[Admission]) -> Result<(), TestCaseError> {
    let (mut opened, mut spent) = (0, 0);
    for (at, cost) in admitted {
        let begin = begin_of_window(subject, *at).max(opened);
        spent = if begin > opened { *cost } else { spent + cost };
        opened = begin;
        prop_assert!(spent <= subject.capacity(), "{spent} in the window from {begin}");
    }
    Ok(())
}
