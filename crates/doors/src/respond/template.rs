//! Texts of a rule's denials, with holes to be filled in.

/// A text with holes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Template {
    /// Each with the hole behind it; the last has none.
    pieces: Vec<(Box<str>, Option<Hole>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hole {
    RetryAfter,
    Limit,
}

/// What holes are filled with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filling {
    /// In seconds; `None` if waiting does not help.
    pub(super) retry_after: Option<u64>,
    pub(super) limit: u64,
}

impl Template {
    /// Reads a text of this rule: its name is filled in at once. What `put` makes of the texts
    /// between holes is kept.
    pub(super) fn new(text: &str, rule: &str, put: impl Fn(&str) -> String) -> Self {
        let text = text.replace("{rule}", rule);
        let (mut pieces, mut rest) = (Vec::new(), &*text);
        while let Some((at, word, hole)) = next_hole(rest) {
            pieces.push((put(&rest[..at]).into(), Some(hole)));
            rest = &rest[at + word.len()..];
        }
        pieces.push((put(rest).into(), None));
        Self { pieces }
    }

    /// Whether it says how long to wait.
    pub(super) fn tells_time(&self) -> bool {
        self.pieces.iter().any(|(_, hole)| *hole == Some(Hole::RetryAfter))
    }

    /// The text for a person: with a time in its unit.
    pub(super) fn say(&self, filling: Filling, to: &mut String) {
        self.fill(filling, to, |to, seconds| {
            let (number, unit) = match seconds {
                0..=120 => (seconds, "s"),
                121..=7_200 => (seconds.div_ceil(60), "min"),
                7_201..=172_800 => (seconds.div_ceil(3_600), "h"),
                _ => (seconds.div_ceil(86_400), "days"),
            };
            to.push_str(itoa::Buffer::new().format(number));
            to.push(' ');
            to.push_str(unit);
        });
    }

    /// The text for a program: with a number of seconds.
    pub(super) fn write(&self, filling: Filling, to: &mut String) {
        self.fill(filling, to, |to, seconds| to.push_str(itoa::Buffer::new().format(seconds)));
    }

    fn fill(&self, filling: Filling, to: &mut String, time: impl Fn(&mut String, u64)) {
        for (text, hole) in &self.pieces {
            to.push_str(text);
            match (hole, filling.retry_after) {
                (None, _) => {}
                (Some(Hole::Limit), _) => {
                    to.push_str(itoa::Buffer::new().format(filling.limit));
                }
                (Some(Hole::RetryAfter), Some(seconds)) => time(to, seconds),
                (Some(Hole::RetryAfter), None) => to.push_str("null"),
            }
        }
    }
}

/// The first hole of a text, where it is and how it is written.
fn next_hole(text: &str) -> Option<(usize, &'static str, Hole)> {
    let holes = [("{retry_after}", Hole::RetryAfter), ("{limit}", Hole::Limit)];
    let found = holes.into_iter().filter_map(|(word, hole)| Some((text.find(word)?, word, hole)));
    found.min_by_key(|(at, _, _)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, seconds: u64) -> String {
        let mut said = String::new();
        let filling = Filling { retry_after: Some(seconds), limit: 5 };
        Template::new(text, "logins", str::to_owned).say(filling, &mut said);
        said
    }

    #[test]
    fn all_holes_are_filled() {
        let text = "{limit} of {rule}{retry_after}{retry_after}, {other} {";
        assert_eq!(said(text, 9), "5 of logins9 s9 s, {other} {");
        assert_eq!(said("", 9), "");
    }

    #[test]
    fn times_are_rounded_up() {
        let times = [1, 120, 121, 900, 901, 7_200, 7_201, 172_801];
        let said = times.map(|seconds| said("{retry_after}", seconds));
        assert_eq!(said, ["1 s", "120 s", "3 min", "15 min", "16 min", "120 min", "3 h", "3 days"]);
    }

    #[test]
    fn programs_are_told_seconds() {
        let template = Template::new("{\"in\":{retry_after}}", "logins", str::to_owned);
        let write = |retry_after| {
            let mut text = String::new();
            template.write(Filling { retry_after, limit: 5 }, &mut text);
            text
        };
        assert_eq!(write(Some(900)), "{\"in\":900}");
        assert_eq!(write(None), "{\"in\":null}");
    }
}
