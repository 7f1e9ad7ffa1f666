//! When requests come.

use std::time::Duration;

use crate::keys;

/// How requests to a node follow each other.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    /// So many in a second, one like the other.
    Even(f64),
    /// So many in a second on the average, whenever the last one was: sometimes several at once.
    Random(f64),
}

/// The requests to one node.
#[derive(Debug)]
pub(super) struct Arrivals {
    pace: Pace,
    /// Where chance is.
    chance: u64,
    count: u64,
    /// When the next one comes, in seconds, if that is random.
    next: f64,
}

impl Arrivals {
    pub(super) fn new(pace: Pace, node: u64) -> Self {
        let mut arrivals = Self { pace, chance: node << 32, count: 0, next: 0.0 };
        arrivals.next = arrivals.pause();
        arrivals
    }

    /// How many have come until then.
    pub(super) fn until(&mut self, now: Duration) -> u64 {
        match self.pace {
            Pace::Even(per_second) => 1 + (now.as_secs_f64() * per_second) as u64,
            Pace::Random(_) => {
                while self.next <= now.as_secs_f64() {
                    self.count += 1;
                    self.next += self.pause();
                }
                self.count
            }
        }
    }

    /// How long it is until the next: any time, the longer the less likely.
    fn pause(&mut self) -> f64 {
        let (Pace::Even(per_second) | Pace::Random(per_second)) = self.pace;
        self.chance += 1;
        let share = ((keys::mix(self.chance) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -share.ln() / per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_come_either_way() {
        let in_ten_seconds = |pace| Arrivals::new(pace, 3).until(Duration::from_secs(10));
        assert_eq!(in_ten_seconds(Pace::Even(100.0)), 1_001);
        let random = in_ten_seconds(Pace::Random(100.0));
        assert!((900..1_100).contains(&random), "{random}");
    }

    #[test]
    fn those_that_are_random_do_not_keep_their_distance() {
        let mut arrivals = Arrivals::new(Pace::Random(100.0), 3);
        let counts: Vec<u64> = (1..=1_000)
            .map(|hundredth| arrivals.until(Duration::from_millis(10 * hundredth)))
            .collect();
        let each = counts.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(each.clone().any(|count| count == 0) && each.clone().any(|count| count >= 3));
    }
}
