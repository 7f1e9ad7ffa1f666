//! A rate as Envoy takes it: so many tokens in so many whole seconds.

/// So many tokens in so many seconds. Envoy fills buckets evenly, and drops fractions of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fill {
    pub(super) tokens: u32,
    pub(super) seconds: u32,
}

impl Fill {
    /// The fill that comes nearest to a rate per second, and is not above it. `None` if that is less
    /// than a token in many years.
    pub(super) fn of(rate: f64) -> Option<Self> {
        let whole = |seconds: u32| {
            // What is meant to be whole may be a little less after a few divisions.
            let exact = rate * f64::from(seconds);
            (exact, (exact + ROUNDING).floor())
        };
        let near = |(exact, tokens): (f64, f64)| tokens >= 1.0 && tokens >= exact * CLOSE;
        if let Some(seconds) = (1..=LONGEST_SEARCH).find(|seconds| near(whole(*seconds))) {
            // Above all that fits there is nothing that Envoy could be told.
            return Some(Self { tokens: whole(seconds).1 as u32, seconds });
        }
        let seconds = (1.0 / rate - ROUNDING).ceil();
        (rate > 0.0 && seconds <= f64::from(u32::MAX)).then_some(Self {
            tokens: 1,
            // Between the search and the largest number.
            seconds: seconds as u32,
        })
    }

    /// In tokens per second.
    pub(super) fn rate(self) -> f64 {
        f64::from(self.tokens) / f64::from(self.seconds)
    }
}

/// Among so many seconds one is looked for in which hardly any part of a token is lost.
const LONGEST_SEARCH: u32 = 100;

/// How much of a rate may not be lost.
const CLOSE: f64 = 0.99;

/// Less than anybody counts.
const ROUNDING: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn usual_rates_are_told_as_they_are() {
        let fill = |tokens, seconds| Some(Fill { tokens, seconds });
        assert_eq!(Fill::of(100.0), fill(100, 1));
        assert_eq!(Fill::of(1.5), fill(3, 2));
        assert_eq!(Fill::of(5.0 / 3600.0), fill(1, 720));
        assert_eq!(Fill::of(1000.0 / 3600.0), fill(5, 18));
        assert_eq!(Fill::of(0.0), None);
    }

    proptest! {
        #[test]
        fn a_fill_is_never_above_its_rate_and_hardly_below(rate in 1e-7..4e9_f64) {
            let told = Fill::of(rate).unwrap().rate();
            prop_assert!(told <= rate * (1.0 + 1e-5) + 1e-6 && told >= rate * 0.98, "{told}");
        }
    }
}
