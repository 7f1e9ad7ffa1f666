//! Whether the store has lost its memory, by the marks of it that were found.

use std::time::Duration;

use tollgate_rules::Lasting;
use tollgate_store::{RedisVisit, StoreError};

use super::diagnosis::{Diagnosis, why};
use super::keys::{MARK, is_mark_text};

/// What is known of the memory. In a Cluster that is what `marks` say which were found among other keys; whoever may
/// not look at those may look at the one of a server. Nothing if that is something else.
pub(super) async fn ask(
    visit: &RedisVisit,
    is_cluster: bool,
    marks: Option<Marks>,
) -> Option<Diagnosis> {
    let unknown = |why: String| {
        let message = format!("whether it has lost its memory is not told ({why})");
        Diagnosis::unknown(CODE, message, "see what stands behind `lost` in `tg:{...}:epoch`")
    };
    let marks = match marks {
        Some(marks) => marks,
        None if is_cluster => return Some(unknown("its marks cannot be looked at".to_owned())),
        None => match visit.ask(&["GET", MARK]).await {
            Ok(texts) => Marks::of(&texts.concat())?,
            Err(error) => return Some(unknown(why(&error))),
        },
    };
    Some(match now(visit).await {
        Ok(now) => marks.diagnosis(now),
        Err(error) => unknown(why(&error)),
    })
}

/// What the store's clock says, in microseconds.
async fn now(visit: &RedisVisit) -> Result<u64, StoreError> {
    let time = visit.ask(&["TIME"]).await?;
    let number = |at: usize| time.get(at).and_then(|word| word.parse::<u64>().ok());
    match (number(0), number(1)) {
        (Some(seconds), Some(micros)) => {
            Ok(seconds.saturating_mul(1_000_000).saturating_add(micros))
        }
        _ => Err(StoreError::Refused { reason: format!("TIME is {time:?}") }),
    }
}

/// What the marks say: one, or one for each slot of a Cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    count: usize,
    /// How many say that something was lost.
    lost: usize,
    /// When everything was lost last, and when another process has taken over last what the one before
    /// knew, in microseconds; 0 if never.
    everything: u64,
    taken_over: u64,
}

impl Marks {
    /// One alone, or none. Nothing if it is something else.
    fn of(mark: &str) -> Option<Self> {
        let mut marks = Self::default();
        match mark {
            "" => {}
            mark if is_mark_text(mark) => marks.note(mark),
            _ => return None,
        }
        Some(marks)
    }

    /// Takes note of a mark: `process P epoch N lost N kept N ...`.
    pub(super) fn note(&mut self, mark: &str) {
        let words: Vec<_> = mark.split(' ').collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(0);
        let (lost, kept) = (number(5), number(7));
        self.count += 1;
        self.lost += usize::from(lost > 0);
        // What is kept goes back to 1, which is the beginning, or to when everything was lost before.
        let (everything, taken_over) = match kept {
            0 => (lost, 0),
            1 => (0, lost),
            since => (since, lost),
        };
        self.everything = self.everything.max(everything);
        self.taken_over = self.taken_over.max(taken_over);
    }

    /// `now` is what the store's clock says, in microseconds.
    pub(super) fn diagnosis(&self, now: u64) -> Diagnosis {
        let ago = |then: u64| Duration::from_micros(now.saturating_sub(then));
        let of = match self.count {
            0 => return Diagnosis::ok(CODE, "it has no memory of counters yet"),
            1 => String::new(),
            count => format!(" (in {} of {count} slots that were looked at)", self.lost),
        };
        let (everything, taken_over) = (ago(self.everything), ago(self.taken_over));
        if self.everything > 0 && everything < WHILE_WINDOWS_LAST {
            return Diagnosis::warning(
                CODE,
                format!(
                    "it lost its whole memory {} ago{of}: a window that has not ended since counts as used up, \
                     that of a month for the rest of it, a log for as long as it looks back, and a bucket \
                     has refilled from nothing since",
                    Lasting(whole(everything))
                ),
                REMEDY,
            );
        }
        if self.taken_over > 0 && taken_over < WHILE_BUCKETS_FILL {
            return Diagnosis::warning(
                CODE,
                format!(
                    "it was started again, or has taken over, {} ago{of}: a bucket has refilled from nothing \
                     since, and a log counts as full for as long as it looks back. Windows of more than a \
                     minute have gone on",
                    Lasting(whole(taken_over))
                ),
                REMEDY,
            );
        }
        let last = self.everything.max(self.taken_over);
        match last {
            0 => Diagnosis::ok(CODE, "it has lost nothing since it was first asked"),
            _ => Diagnosis::ok(
                CODE,
                format!(
                    "its memory began anew {} ago, which hardly matters now",
                    Lasting(ago(last))
                ),
            ),
        }
    }
}

/// To the second: nobody needs more.
fn whole(span: Duration) -> Duration {
    Duration::from_secs(span.as_secs().max(1))
}

const CODE: &str = "epoch";

/// So long a window of a month may be used up because of a loss.
const WHILE_WINDOWS_LAST: Duration = Duration::from_secs(31 * 86_400);

/// So long slow buckets and logs notice that another has taken over. Those of more than a day are rare.
const WHILE_BUCKETS_FILL: Duration = Duration::from_secs(86_400);

const REMEDY: &str = "`tollgate keys reset` gives single keys a new start. Who knows that nothing was spent before \
    has the mark say so, by the command in docs/sharing.md#after-the-memory-was-lost";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Grade;

    const DAY: u64 = 86_400 * 1_000_000;
    const NOW: u64 = 20_000 * DAY;

    fn found(marks: &[(u64, u64)]) -> Diagnosis {
        let mut seen = Marks::default();
        for (lost, kept) in marks {
            let mark = format!(
                "process p epoch 7 lost {lost} kept {kept} moved 0 beat 8 until - since 7 noted 0"
            );
            assert!(is_mark_text(&mark), "{mark}");
            seen.note(&mark);
        }
        seen.diagnosis(NOW)
    }

    #[test]
    fn a_store_that_has_lost_nothing_is_fine() {
        assert_eq!(found(&[]).grade, Grade::Ok);
        assert_eq!(found(&[(0, 0), (0, 0)]).grade, Grade::Ok);
    }

    #[test]
    fn a_loss_is_a_warning_as_long_as_limits_notice_it() {
        let everything = found(&[(NOW - 30 * DAY, 0)]);
        assert_eq!(everything.grade, Grade::Warning);
        assert!(everything.message.contains("whole memory 30 d ago"), "{everything:?}");
        assert!(everything.remedy.contains("keys reset"), "{everything:?}");
        assert_eq!(found(&[(NOW - 31 * DAY, 0)]).grade, Grade::Ok);
        let taken_over = found(&[(NOW - DAY / 2, 1)]);
        assert_eq!(taken_over.grade, Grade::Warning);
        assert!(taken_over.message.contains("has taken over, 12 h ago"), "{taken_over:?}");
        assert_eq!(found(&[(NOW - DAY, 1)]).grade, Grade::Ok);
    }

    #[test]
    fn what_was_lost_before_something_was_kept_stays_lost() {
        let both = found(&[(NOW - DAY / 2, NOW - 3 * DAY)]);
        assert!(both.message.contains("whole memory 3 d ago"), "{both:?}");
    }

    #[test]
    fn slots_of_a_cluster_are_counted_and_the_latest_loss_counts() {
        let found = found(&[(0, 0), (NOW - 2 * DAY, 0), (NOW - DAY, 0)]);
        assert!(found.message.contains("1 d ago (in 2 of 3 slots"), "{found:?}");
    }
}
