//! Lines of the log about requests that were denied: some of them, and how many were left out.

use std::fmt::Write as _;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::{Limiter, Quota, Request, Ruling, SystemClock};
use tollgate_rules::{Attribute, Facts, Rule};

use crate::config::Log;
use crate::door::Name;
use crate::metrics::Tally;
use crate::service::THROTTLED;

/// Writes about denials, at most so often.
#[derive(Debug)]
pub(crate) struct Denials {
    /// How often; `None` is never.
    pace: Option<Limiter>,
    /// Those that were not written about.
    left_out: Tally,
    /// How many of them there were when the last line was written.
    told: AtomicU64,
    /// Keys are written as a hash under a secret of this process: equal keys look equal, and nobody
    /// can try names until one fits. The hashes of tables would not do: they are made to be fast.
    secret: Secret,
    plain: bool,
}

#[expect(clippy::disallowed_types, reason = "a hash with a secret, that of no counter")]
type Secret = std::hash::RandomState;

impl Denials {
    pub(crate) fn new(log: &Log, clock: &SystemClock) -> Self {
        Self {
            pace: pace(log.denials, clock),
            left_out: Tally::default(),
            told: AtomicU64::new(0),
            secret: secret(),
            plain: log.plain_keys,
        }
    }

    /// How many denials were not written about, of all.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.total()
    }

    /// A request was denied. Whether a line was written about it: if not, there is none about others
    /// that were denied at the same time.
    #[cold]
    #[inline(never)]
    pub(crate) fn note(&self, door: Name, request: &Request<'_>, ruling: &Ruling) -> bool {
        let is_due = self.is_due();
        match is_due {
            true => self.write(door, request, ruling),
            false => self.leave_out(1),
        }
        is_due
    }

    /// So many requests were denied, and nothing is written about them.
    pub(crate) fn leave_out(&self, denied: u64) {
        self.left_out.add(denied);
    }

    /// So many requests were denied together by limits that they brought, one with this key.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_throttled(&self, denied: u64, key: &[u8]) {
        if !self.is_due() {
            return self.left_out.add(denied);
        }
        self.left_out.add(denied.saturating_sub(1));
        let (name, value) = ("key".to_owned(), key.escape_ascii().to_string());
        let key = self.key(&[Part { name, value, of: Of::Itself, hidden: !self.plain }]);
        let (door, rule) = (Name::Resp.as_str(), THROTTLED);
        tracing::info!(target: TARGET, door, rule, key, left_out = self.untold(), "denied");
    }

    /// Whether another line may be written now.
    fn is_due(&self) -> bool {
        let shown = tracing::enabled!(target: TARGET, tracing::Level::INFO);
        shown && self.pace.as_ref().is_some_and(|pace| pace.check(&()).is_allowed())
    }

    /// How many were left out since the last line. Lines of two threads may share that out between
    /// them, and lose nothing.
    fn untold(&self) -> u64 {
        let left_out = self.left_out();
        left_out.saturating_sub(self.told.swap(left_out, Ordering::Relaxed))
    }

    fn write(&self, door: Name, request: &Request<'_>, ruling: &Ruling) {
        let mut room = String::new();
        let request = request.normal(&mut room);
        let rules = ruling.rules();
        let facts = Facts::new(rules, &request, rules.geo());
        let denying = ruling.each().find(|each| Some(each.name()) == ruling.rule());
        let parts = denying.map(|each| self.parts(each.rule(), &facts)).unwrap_or_default();
        let client = facts.client_ip().map(|ip| self.beside(&parts, Of::Address, &ip.to_string()));
        tracing::info!(
            target: TARGET,
            door = door.as_str(),
            rule = ruling.rule().unwrap_or_default(),
            client = client.map(tracing::field::display),
            method = shown(request.method()),
            path = self.beside(&parts, Of::Path, request.path()),
            key = self.key(&parts),
            left_out = self.untold(),
            "denied"
        );
    }

    /// What the request was counted by.
    fn parts(&self, rule: &Rule, facts: &Facts<'_>) -> Vec<Part> {
        let part = |part: &Attribute| Part {
            name: part.to_string(),
            value: match (rule.key_value(part, facts), rule.value_instead(facts)) {
                (Some(value), _) | (None, Some(value)) => value.to_string(),
                (None, None) => String::new(),
            },
            of: Of::attribute(part),
            hidden: !self.plain || is_credential(part),
        };
        rule.key().iter().map(part).collect()
    }

    /// The same as it is written: `user=5f0c3a21b7d9e846`, several with blanks.
    fn key(&self, parts: &[Part]) -> String {
        let mut key = String::new();
        for Part { name, value, hidden, .. } in parts {
            let blank = if key.is_empty() { "" } else { " " };
            // A `String` takes whatever is written to it.
            let _ = match hidden {
                false => write!(key, "{blank}{name}={}", shown(value)),
                true => write!(key, "{blank}{name}={:016x}", self.secret.hash_one(value)),
            };
        }
        key
    }

    /// What else is written of a request: as a hash, if it would tell what the key hides.
    fn beside(&self, parts: &[Part], of: Of, text: &str) -> String {
        match parts.iter().any(|part| part.hidden && (part.of == of || part.is_in(text))) {
            true => format!("#{:016x}", self.secret.hash_one(text)),
            false => shown(text),
        }
    }
}

/// A part of what a request was counted by.
struct Part {
    name: String,
    value: String,
    of: Of,
    /// Whether only its hash is written.
    hidden: bool,
}

/// What of a request a part of its key is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Address,
    Path,
    /// Nothing else that is written.
    Itself,
}

impl Of {
    const fn attribute(attribute: &Attribute) -> Self {
        match attribute {
            Attribute::Ip | Attribute::IpPrefix(_) | Attribute::Asn | Attribute::Country => {
                Self::Address
            }
            Attribute::Path | Attribute::PathParameter(_) => Self::Path,
            // A method is one of a few words, and no secret.
            _ => Self::Itself,
        }
    }
}

impl Part {
    /// Whether a path tells its value: `/users/alice` that of `user=alice`, in whatever letters, and
    /// escaped or not.
    fn is_in(&self, path: &str) -> bool {
        let plain = |text: &str| {
            percent_encoding::percent_decode_str(text).decode_utf8_lossy().to_lowercase()
        };
        let (path, value) = (plain(path), plain(&self.value));
        let is_long = value.len() >= LONG;
        // Of a path also what stands before or behind a sign: `7` in `/users/7.json`.
        let is_path = path.starts_with('/');
        let mut pieces = path.split(|char: char| char == '/' || (is_path && SIGNS.contains(&char)));
        !value.is_empty()
            && (pieces.any(|piece| piece == value) || (is_long && path.contains(&value)))
    }
}

/// What separates words within a segment of a path.
const SIGNS: [char; 4] = ['.', ';', ',', '='];

#[expect(clippy::disallowed_methods, reason = "a hash with a secret, that of no counter")]
fn secret() -> Secret {
    Secret::new()
}

/// So many a second, all at once if need be.
fn pace(a_second: u32, clock: &SystemClock) -> Option<Limiter> {
    let quota: Quota = format!("{a_second}/s").parse().ok()?;
    Limiter::builder(quota).keys(1).clock(clock.clone()).build().ok()
}

/// Whether an attribute is what lets somebody in: that is never written.
fn is_credential(part: &Attribute) -> bool {
    match part {
        Attribute::Header(name) => CREDENTIALS.contains(&&**name),
        Attribute::Given(name) => &**name == "api_key",
        _ => false,
    }
}

/// What a client sent, in a form that cannot be taken for anything else: of bounded length, and
/// without characters that end a line or change how it is shown.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (at, char) in text.char_indices() {
        if at >= MOST_BYTES {
            shown.push('…');
            break;
        }
        match is_harmless(char) {
            true => shown.push(char),
            false => shown.extend(char.escape_unicode()),
        }
    }
    shown
}

fn is_harmless(char: char) -> bool {
    !char.is_control()
        && !matches!(char, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{feff}')
        && !matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Headers with credentials, in small letters.
const CREDENTIALS: [&str; 5] =
    ["authorization", "cookie", "proxy-authorization", "x-api-key", "x-auth-token"];

/// A shorter value may be part of a path by chance.
const LONG: usize = 4;

/// Of what a client sent, so much is written.
const MOST_BYTES: usize = 256;

const TARGET: &str = "tollgate::denials";

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::RuleSet;

    fn denials(plain_keys: bool) -> Denials {
        let log = Log { plain_keys, ..crate::Config::defaults(1).log };
        Denials::new(&log, &SystemClock::new())
    }

    fn key(denials: &Denials, key: &str, user: &str) -> String {
        let text = format!("rules: [{{ name: a, key: [{key}], limit: 1/h }}]");
        let rules = RuleSet::parse(&text).unwrap();
        let (attributes, headers) = ([("user", user)], [("authorization", user)]);
        let request = Request::new("GET", "/").attributes(&attributes).headers(&headers);
        denials.key(&denials.parts(&rules.rules()[0], &Facts::new(&rules, &request, None)))
    }

    /// What is written of the path and of the address of a request that is counted by `key`.
    fn beside(denials: &Denials, key: &str, path: &str) -> [String; 2] {
        let text = format!(
            "rules: [{{ name: a, match: {{ path: '/users/{{id}}' }}, key: [{key}], limit: 1/h }}]"
        );
        let rules = RuleSet::parse(&text).unwrap();
        let attributes = [("user", "alice"), ("account", "42")];
        let request = Request::new("GET", path).attributes(&attributes).peer([192, 0, 2, 7].into());
        let parts = denials.parts(&rules.rules()[0], &Facts::new(&rules, &request, None));
        [denials.beside(&parts, Of::Path, path), denials.beside(&parts, Of::Address, "192.0.2.7")]
    }

    #[test]
    fn what_tells_a_hidden_key_is_hidden_with_it() {
        let hashed = denials(false);
        for (key, path, shown) in [
            ("user", "/users/7", [true, true]),
            ("user", "/users/alice", [false, true]),
            ("user", "/users/x-alice-x", [false, true]),
            ("user", "/users/%41LICE", [false, true]),
            ("account", "/users/42.json", [false, true]),
            ("account", "/users/42", [false, true]),
            ("account", "/users/421", [true, true]),
            ("path", "/users/7", [false, true]),
            ("path.id", "/users/7", [false, true]),
            ("ip", "/users/7", [true, false]),
            ("ip/24", "/users/7", [true, false]),
            ("method", "/users/7", [true, true]),
        ] {
            let written = beside(&hashed, key, path);
            let is_shown = [written[0] == path, written[1] == "192.0.2.7"];
            assert_eq!(is_shown, shown, "{key} {path}: {written:?}");
        }
        assert_eq!(beside(&denials(true), "path, ip", "/users/7"), ["/users/7", "192.0.2.7"]);
    }

    #[test]
    fn keys_are_hashed_unless_they_are_asked_for() {
        let hashed = denials(false);
        let alice = key(&hashed, "user, method", "alice");
        assert!(!alice.contains("alice") && alice.starts_with("user="), "{alice}");
        assert_eq!(alice, key(&hashed, "user, method", "alice"));
        assert_ne!(alice, key(&hashed, "user, method", "bob"));
        assert_ne!(alice, key(&denials(false), "user, method", "alice"), "others cannot tell");
        assert_eq!(key(&denials(true), "user, method", "alice"), "user=alice method=GET");
    }

    #[test]
    fn credentials_are_never_written() {
        let written = key(&denials(true), "header.authorization", "s3cret");
        assert!(!written.contains("s3cret"), "{written}");
    }

    #[test]
    fn what_clients_send_stays_in_its_place() {
        assert_eq!(shown("/a\nb\u{1b}[1m\u{202e}"), "/a\\u{a}b\\u{1b}[1m\\u{202e}");
        let long = shown(&"é".repeat(10_000));
        assert!(long.len() <= MOST_BYTES + 3 && long.ends_with('…'), "{}", long.len());
    }

    #[test]
    fn what_is_not_written_is_counted() {
        let none = Denials::new(
            &Log { denials: 0, ..crate::Config::defaults(1).log },
            &SystemClock::new(),
        );
        let engine = tollgate::Engine::new(
            RuleSet::parse("rules: [{ name: a, key: [], limit: 1/h }]").unwrap(),
        );
        let request = Request::new("GET", "/");
        let ruling = engine.unwrap().decide(&request);
        for _ in 0..3 {
            none.note(Name::Http, &request, &ruling);
        }
        assert_eq!(none.left_out(), 3);
        none.note_throttled(5, b"alice");
        assert_eq!(none.left_out(), 8);
    }
}
