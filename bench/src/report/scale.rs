//! From values to places in a picture.

use super::{Across, Line, Panel};

/// Which values there is room for, in round steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    step: f64,
    /// Steps below nothing, and above.
    below: u32,
    above: u32,
}

impl Range {
    /// From nothing to the largest value of a panel.
    pub(super) fn of(panel: &Panel) -> Self {
        Self::holding(panel.lines.iter().flat_map(Line::drawn), 5.0)
    }

    /// One for all panels, if differences are drawn: so that one is seen to be smaller than another.
    pub(super) fn of_differences(panels: &[Panel]) -> Option<Self> {
        let lines = || panels.iter().flat_map(|panel| &panel.lines);
        let is_difference = lines().any(Line::is_difference);
        is_difference.then(|| Self::holding(lines().flat_map(Line::drawn), 8.0))
    }

    /// In about so many steps.
    fn holding(values: impl Iterator<Item = f64>, steps: f64) -> Self {
        let (mut least, mut largest) = (0.0_f64, 1.0_f64);
        for value in values.filter(|value| value.is_finite()) {
            (least, largest) = (least.min(value), largest.max(value));
        }
        let step = round_step((largest - least) / steps);
        let to = |end: f64| (end / step).ceil() as u32;
        Self { step, below: to(-least), above: to(largest) }
    }

    /// All steps, from the lowest.
    pub(super) fn steps(self) -> impl Iterator<Item = f64> {
        let step = move |number: u32| (f64::from(number) - f64::from(self.below)) * self.step;
        (0..=self.below + self.above).map(step)
    }

    /// How far up a value is, from 0 to 1.
    fn share(self, value: f64) -> f64 {
        let steps = f64::from(self.below + self.above);
        (value / self.step + f64::from(self.below)) / steps
    }
}

/// Where values of one panel are.
pub(super) struct Scale {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) range: Range,
    pub(super) is_difference: bool,
    across: Across,
    first: f64,
    breadth: f64,
}

impl Scale {
    pub(super) fn of(panel: &Panel, range: Range, (left, top): (f64, f64)) -> Self {
        let place = |keys: Option<&usize>| panel.across.place(keys.copied().unwrap_or(1));
        let (first, last) = (place(panel.keys.first()), place(panel.keys.last()));
        Self {
            left: left + AXIS_WIDTH,
            top,
            range,
            is_difference: panel.lines.iter().any(Line::is_difference),
            across: panel.across,
            first,
            breadth: (last - first).max(1.0),
        }
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + PLOT_HEIGHT
    }

    pub(super) fn x(&self, keys: usize) -> f64 {
        let share = (self.across.place(keys) - self.first) / self.breadth;
        self.left + 14.0 + share * (PLOT_WIDTH - 28.0)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom() - self.range.share(value) * PLOT_HEIGHT
    }
}

impl Across {
    fn place(self, keys: usize) -> f64 {
        match self {
            Self::Keys => (keys.max(1) as f64).log10(),
            Self::Tenths => keys as f64,
        }
    }
}

/// The next of 1, 2, 5, 10, 20, 50 and so on.
fn round_step(at_least: f64) -> f64 {
    let decade = 10_f64.powf(at_least.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * decade >= at_least);
    factor.unwrap_or(10.0) * decade
}

pub(super) const PLOT_WIDTH: f64 = 320.0;
pub(super) const PLOT_HEIGHT: f64 = 240.0;
pub(super) const AXIS_WIDTH: f64 = 44.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!(round_step(37.0), 50.0);
        assert_eq!(round_step(120.0), 200.0);
        assert_eq!(round_step(5.0), 5.0);
    }

    #[test]
    fn there_is_room_below_nothing_if_it_is_needed() {
        let steps =
            |values: [f64; 2]| Range::holding(values.into_iter(), 5.0).steps().collect::<Vec<_>>();
        assert_eq!(steps([3.0, 4.0]), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(steps([-30.0, 700.0]), [-200.0, 0.0, 200.0, 400.0, 600.0, 800.0]);
    }
}
