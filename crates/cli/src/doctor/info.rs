//! What a server says about itself in `INFO`.

use std::str::FromStr;

/// Lines of names and values.
#[derive(Clone, Debug)]
pub(super) struct Info(String);

impl Info {
    pub(super) const fn new(text: String) -> Self {
        Self(text)
    }

    /// The value of a name, if it is there.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let value = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'));
        let line = self.0.lines().find(|line| value(line))?;
        line.split_once(':').map(|(_, value)| value.trim())
    }

    pub(super) fn number<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    pub(super) fn is(&self, name: &str, value: &str) -> bool {
        self.text(name) == Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_whole_name() {
        let info =
            Info::new("# Memory\r\nused_memory_rss:7\r\nused_memory:5\r\nrole:a:b\r\n".into());
        assert_eq!(info.number("used_memory"), Some(5u64));
        assert_eq!(info.text("role"), Some("a:b"));
        assert_eq!((info.text("rol"), info.number::<u64>("role")), (None, None));
    }
}
