//! Limits of single keys: what somebody was promised beyond a rule's own limit.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use tollgate_core::{Limit, Quota};

use crate::attribute::Attribute;
use crate::budget::{Budget, Rates};
use crate::client_ip::ClientIp;
use crate::diagnostic::Diagnostic;
use crate::document::{Node, Value};
use crate::facts::{Value as Fact, prefix_length};
use crate::files::Files;
use crate::key::KeyParts;
use crate::normal::{bare_host, write_normal, write_segment};
use crate::read::{Reader, shortened};

/// Keys with limits of their own, sorted, their text in one piece.
#[derive(Clone, Debug)]
pub(crate) struct Overrides {
    text: Box<str>,
    entries: Box<[Entry]>,
    /// The different quotas that keys have.
    pub(crate) quotas: Box<[Quota]>,
    /// For each of these as many limits as for each quota of the rule.
    pub(crate) limits: Box<[Limit]>,
}

/// Eight bytes for each key, beside its text.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u32,
    len: u16,
    quota: u16,
}

impl Overrides {
    /// The most keys with limits of their own, for one rule.
    pub(crate) const MAX: usize = 4_000_000;
    /// The most different limits among them: each has a counter of its own.
    pub(crate) const MAX_QUOTAS: usize = 4_096;

    /// Each key, in the form in which it is counted, and which of the quotas it has.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, usize)> {
        self.entries.iter().map(|entry| (self.key(entry), usize::from(entry.quota)))
    }

    fn key(&self, entry: &Entry) -> &str {
        let start = entry.start as usize;
        &self.text[start..start + usize::from(entry.len)]
    }

    /// Keys that a file lists, or the rule itself.
    pub(crate) fn read(
        reader: &mut Reader<'_>,
        node: &Node,
        budget: &Budget,
        written: Written<'_>,
        files: &dyn Files,
    ) -> Option<Self> {
        let Budget::Rate(rates) = budget else {
            let message = "only rates can be overridden";
            let remedy = "leave `overrides` out, or limit a rate with `limit: 100/min`";
            let span = first(node);
            reader.add(Diagnostic::error(
                "no-overrides",
                span,
                message,
                "beside `concurrent`",
                remedy,
            ));
            return None;
        };
        if written.key.parts.is_empty() {
            let message = "a rule that counts everybody together has no keys to override";
            let remedy = "count by something: `key: [user]`";
            let span = first(node);
            reader.add(Diagnostic::error("no-overrides", span, message, "here", remedy));
            return None;
        }
        let mut lines =
            Lines { reader, node, written, rates, overrides: Building::default(), bad: 0 };
        match &node.value {
            Value::Map(fields) => {
                for field in fields {
                    let quota = match &field.value.value {
                        Value::Text(text) | Value::Number(text) => text.as_str(),
                        _ => "",
                    };
                    let at = || format!("`{}`", shortened(&field.name));
                    lines.add(&field.name, Some(quota), &at);
                }
            }
            _ => lines.read_file(files)?,
        }
        lines.finish()
    }
}

fn first(node: &Node) -> std::ops::Range<usize> {
    node.span.start..node.span.start
}

/// How keys are written.
#[derive(Clone, Copy)]
pub(crate) struct Written<'k> {
    pub(crate) key: &'k KeyParts,
    pub(crate) client_ip: &'k ClientIp,
}

impl Written<'_> {
    /// Appends a key in the form in which it is counted: two that are counted as one are the same
    /// text then.
    fn write(&self, key: &str, text: &mut String) -> Result<(), String> {
        let last = self.key.parts.len().saturating_sub(1);
        for (number, (part, value)) in self.key.parts.iter().zip(self.key.written(key)).enumerate()
        {
            let value = value.ok_or_else(|| self.no_such(key, number, part))?;
            if number > 0 {
                text.push(',');
            }
            let start = text.len();
            self.write_part(part, value, text);
            // Commas part the parts.
            if number < last && text[start..].contains(',') {
                text.truncate(start);
                write_value(value, text);
            }
        }
        Ok(())
    }

    fn write_part(&self, part: &Attribute, value: Fact<'_>, text: &mut String) {
        let start = text.len();
        match (part, value) {
            (Attribute::Ip, Fact::Ip(ip)) => {
                write_value(Fact::Ip(self.client_ip.counted(ip)), text);
            }
            (Attribute::IpPrefix(bits), Fact::Ip(ip)) => write_network(ip, *bits, text),
            (Attribute::Host, Fact::Text(host)) => {
                text.push_str(bare_host(host));
                text[start..].make_ascii_lowercase();
            }
            (Attribute::Method, Fact::Text(method)) => {
                text.push_str(method);
                text[start..].make_ascii_uppercase();
            }
            (Attribute::Path, Fact::Text(path)) => write_normal(path, text),
            (Attribute::PathParameter(_), Fact::Text(segment)) => write_segment(segment, text),
            (_, value) => write_value(value, text),
        }
    }

    /// Why a part of a key is none. The rest of the line is not repeated: it may not be meant for
    /// whoever reads this.
    fn no_such(&self, key: &str, number: usize, part: &Attribute) -> String {
        let text = key.splitn(self.key.parts.len().max(1), ',').nth(number).unwrap_or("").trim();
        let network = text.parse::<ipnet::IpNet>().map(|network| network.addr());
        if let (Attribute::IpPrefix(bits), Ok(ip)) = (part, network) {
            let mut right = String::new();
            write_network(ClientIp::prefix(ip, *bits), *bits, &mut right);
            return format!("`{text}` is not what `{part}` counts by, which is `{right}`");
        }
        match text.len() {
            0 => format!("the key has no `{part}`"),
            1..=Lines::MAX_QUOTED => {
                format!("`{}` cannot be the `{part}` of a request", shortened(text))
            }
            _ => format!("the key has a `{part}` that no request can have"),
        }
    }
}

fn write_network(ip: IpAddr, bits: u8, text: &mut String) {
    // Writing to a text does not fail.
    let _ = write!(text, "{ip}/{}", prefix_length(ip, bits));
}

fn write_value(value: Fact<'_>, text: &mut String) {
    let _ = write!(text, "{value}");
}

#[derive(Default)]
struct Building {
    text: String,
    entries: Vec<Entry>,
    quotas: Vec<Quota>,
    /// The same, to find their numbers by.
    numbers: BTreeMap<String, u16>,
    /// The text of the last quota and its number: files repeat themselves.
    known: BTreeMap<Box<str>, u16>,
}

struct Lines<'l, 'r> {
    reader: &'l mut Reader<'r>,
    node: &'l Node,
    written: Written<'l>,
    rates: &'l Rates,
    overrides: Building,
    bad: usize,
}

impl Lines<'_, '_> {
    /// More than this is not said about one file.
    const MAX_BAD: usize = 10;

    /// What is longer is not repeated in messages: it may be from a file of another kind.
    const MAX_QUOTED: usize = 40;

    fn read_file(&mut self, files: &dyn Files) -> Option<()> {
        let name = self.reader.text(self.node, "`overrides`")?;
        let text = match files.read(name) {
            Ok(text) => text,
            Err(error) => {
                let name = shortened(name);
                let message = format!("the overrides in `{name}` cannot be read: {error}");
                let remedy =
                    "name a file beside the rule file, with lines like `acme-corp,50000/min`";
                let span = self.node.span.clone();
                self.reader.add(Diagnostic::error(
                    "unreadable-file",
                    span,
                    message,
                    "this file",
                    remedy,
                ));
                return None;
            }
        };
        // Spreadsheets write a mark before the first key, which is not part of it.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, quota) = match line.rsplit_once(',') {
                Some((key, quota)) => (key.trim(), Some(quota.trim())),
                None => (line, None),
            };
            self.add(key, quota, &|| format!("{}:{}", shortened(name), number + 1));
        }
        Some(())
    }

    fn add(&mut self, key: &str, quota: Option<&str>, at: &dyn Fn() -> String) {
        let added = match quota {
            Some(quota) => self.try_add(key, quota),
            None => Err("there is no comma, and so no limit".to_owned()),
        };
        if let Err(why) = added {
            self.bad += 1;
            if self.bad <= Self::MAX_BAD {
                let message = format!("{}: {why}", at());
                let remedy = "write one key and its limit on each line: `acme-corp,50000/min`";
                let span = first(self.node);
                self.reader.add(Diagnostic::error(
                    "bad-override",
                    span,
                    message,
                    "from here",
                    remedy,
                ));
            }
        }
    }

    fn try_add(&mut self, key: &str, quota: &str) -> Result<(), String> {
        if self.overrides.entries.len() == Overrides::MAX {
            return Err(format!("there are more than {} keys", Overrides::MAX));
        }
        let quota = self.quota(quota)?;
        let building = &mut self.overrides;
        let before = building.text.len();
        let start = u32::try_from(before).map_err(|_| "the keys take more than 4 GB".to_owned())?;
        let len = self.written.write(key, &mut building.text).and_then(|()| {
            u16::try_from(building.text.len() - before)
                .map_err(|_| "the key is longer than 65535 bytes".to_owned())
        });
        match len {
            Ok(len) => building.entries.push(Entry { start, len, quota }),
            Err(_) => building.text.truncate(before),
        }
        len.map(|_| ())
    }

    fn quota(&mut self, text: &str) -> Result<u16, String> {
        if let Some(known) = self.overrides.known.get(text) {
            return Ok(*known);
        }
        let quota: Quota = text.parse().map_err(|error| match text.len() {
            0..=Self::MAX_QUOTED => format!("{error}"),
            _ => "what is behind the last comma is no limit".to_owned(),
        })?;
        let Building { quotas, numbers, .. } = &mut self.overrides;
        let number = match numbers.get(&quota.to_string()) {
            Some(number) => *number,
            None if quotas.len() == Overrides::MAX_QUOTAS => {
                return Err(format!(
                    "there are more than {} different limits",
                    Overrides::MAX_QUOTAS
                ));
            }
            None => {
                self.rates.shape.limits(quota).map_err(|error| error.to_string())?;
                // At most 4096.
                let number = u16::try_from(quotas.len()).unwrap_or(u16::MAX);
                quotas.push(quota);
                numbers.insert(quota.to_string(), number);
                number
            }
        };
        if self.overrides.known.len() < Overrides::MAX_QUOTAS * 2 {
            self.overrides.known.insert(text.into(), number);
        }
        Ok(number)
    }

    fn finish(self) -> Option<Overrides> {
        let Building { text, mut entries, quotas, .. } = self.overrides;
        let key = |entry: &Entry| &text[entry.start as usize..][..usize::from(entry.len)];
        entries.sort_by(|a, b| key(a).cmp(key(b)));
        for pair in entries
            .windows(2)
            .filter(|pair| key(&pair[0]).cmp(key(&pair[1])) == Ordering::Equal)
            .take(Self::MAX_BAD)
        {
            let message = format!("the key `{}` is given twice", shortened(key(&pair[0])));
            let span = first(self.node);
            self.reader.add(Diagnostic::error(
                "duplicate",
                span,
                message,
                "from here",
                "keep one of them",
            ));
        }
        if self.bad > Self::MAX_BAD {
            let message = format!("{} more overrides are no good", self.bad - Self::MAX_BAD);
            let span = first(self.node);
            self.reader.add(Diagnostic::error(
                "bad-override",
                span,
                message,
                "from here",
                "mend these first",
            ));
        }
        let limits =
            quotas.iter().filter_map(|quota| self.rates.shape.limits(*quota).ok()).flatten();
        Some(Overrides {
            limits: limits.collect(),
            text: text.into(),
            entries: entries.into(),
            quotas: quotas.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{RuleSet, Source};

    fn read(head: &str, key: &str, overrides: &str) -> Result<Vec<String>, String> {
        let text = format!(
            "{head}\nrules: [{{ name: a, match: {{ path: '/{{id}}' }}, key: [{key}], limit: 5/s, overrides: {{ {overrides} }} }}]"
        );
        let source = Source::new("a.yaml", text);
        let set = RuleSet::read(&source, &crate::NoFiles).map_err(|report| {
            let each = report.diagnostics().iter();
            each.map(|it| format!("{}: {}", it.code(), it.message())).collect::<Vec<_>>().join("; ")
        })?;
        Ok(set.rules()[0].overrides().map(|(key, _)| key.to_owned()).collect())
    }

    #[test]
    fn keys_are_kept_as_they_are_counted() {
        for (key, written, kept) in [
            ("user", "Acme", "Acme"),
            ("user", "'smith,  john'", "smith,  john"),
            ("user, ip", "'acme , 192.0.2.7'", "acme,192.0.2.7"),
            ("ip", "'::ffff:192.0.2.7'", "192.0.2.7"),
            ("ip", "'2001:db8::1'", "2001:db8::"),
            ("ip/24", "192.0.2.7", "192.0.2.0/24"),
            ("ip/24", "192.0.2.0/24", "192.0.2.0/24"),
            ("ip/24", "'2001:db8:1:2::/48'", "2001:db8:1::/48"),
            ("ip/48", "192.0.2.7", "192.0.2.7/32"),
            ("host", "'API.example.com.:443'", "api.example.com"),
            ("method", "post", "POST"),
            ("path", "'/café/../a//b'", "/a/b"),
            ("path.id", "'caf%c3%a9'", "caf%C3%A9"),
            ("path, user", "'/a%2Cb,ann'", "/a%2Cb,ann"),
        ] {
            let read = read("", key, &format!("{written}: 9/s"));
            assert_eq!(read, Ok(vec![kept.to_owned()]), "{key}: {written}");
            let again = self::read("", key, &format!("'{kept}': 9/s"));
            assert_eq!(again, read, "{key}: {kept}");
        }
    }

    #[test]
    fn keys_that_are_counted_as_one_are_duplicates() {
        let wide = "client_ip: { ipv6_host: 48 }";
        for (head, key, one, other) in [
            ("", "ip", "2001:db8::1", "2001:db8::2"),
            ("", "ip", "192.0.2.7", "::ffff:192.0.2.7"),
            (wide, "ip", "2001:db8:0:1::", "2001:db8:0:2::"),
            ("", "ip/24", "192.0.2.1", "192.0.2.0/24"),
            ("", "ip/24", "2001:db8:0:1::", "2001:db8::/48"),
            ("", "user, ip/24", "ann,192.0.2.1", "ann, 192.0.2.2"),
            ("", "host", "a.com", "A.com:80"),
            ("", "asn", "64496", "064496"),
        ] {
            let why = read(head, key, &format!("'{one}': 9/s, '{other}': 8/s")).unwrap_err();
            assert!(why.contains("duplicate: the key `"), "{one} and {other}: {why}");
        }
        assert!(read("", "ip", "'2001:db8:0:1::': 9/s, '2001:db8:0:2::': 8/s").is_ok());
    }

    #[test]
    fn networks_of_another_length_are_refused() {
        for (key, network, right) in [
            ("ip/24", "192.0.0.0/16", "192.0.0.0/24"),
            ("ip/24", "192.0.2.7/32", "192.0.2.0/24"),
            ("ip/24", "2001:db8::/24", "2001:db8::/48"),
            ("ip/48", "192.0.2.0/24", "192.0.2.0/32"),
        ] {
            let why = read("", key, &format!("'{network}': 9/s")).unwrap_err();
            let said = format!("`{network}` is not what `{key}` counts by, which is `{right}`");
            assert!(why.starts_with("bad-override") && why.ends_with(&said), "{why}");
        }
    }
}
