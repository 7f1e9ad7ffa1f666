//! Our other algorithms, held against our token bucket.

use super::bed::{Keys, ours_single};
use crate::error::BenchError;
use crate::report::{Reach, Row, Unit, count_of};
use crate::subject::{Algorithm, Ours};
use crate::suite::Session;

/// Measures both windows.
pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    let size = session.scale.medium;
    let name = |what: &str| format!("{} u64 keys, {what}", count_of(size));
    let fixed = name("our fixed window");
    let sliding = name("our sliding window counter");
    if !session.wants_any([&fixed, &sliding]) {
        return Ok(());
    }
    let keys = Keys::<u64>::new(session, size);
    let visits = keys.visits();
    let filled = |algorithm| -> Result<Ours, BenchError> {
        Ok(keys.fill(Ours::new(algorithm, keys.allowance, size)?))
    };
    let bucket = filled(Algorithm::TokenBucket)?;
    for (name, algorithm) in [(fixed, Algorithm::FixedWindow), (sliding, Algorithm::SlidingWindow)]
    {
        if !session.wants(&name) {
            continue;
        }
        let window = filled(algorithm)?;
        let sides =
            [ours_single::<u64, _>(&window, &visits), ours_single::<u64, _>(&bucket, &visits)];
        let [window, bucket] = session.measure(&name, sides)?;
        let peer = ("our token bucket", bucket.nanos);
        let row = Row::against(name, Unit::NanosPerDecision, window.nanos, peer);
        session.add(row.promising(Reach::Within(1.3)));
    }
    Ok(())
}
