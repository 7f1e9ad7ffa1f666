//! Whether something else stands where counters should, or the mark of the store's memory.

use std::time::Duration;

use tollgate_rules::Lasting;
use tollgate_store::{RedisVisit, StoreError};

use super::diagnosis::{Diagnosis, why};
use super::epoch::Marks;

/// Looks at some keys with our names. There may be millions, so not at all of them. Says what the marks among
/// them are, if they could be looked at.
pub(super) async fn ask(visit: &RedisVisit, is_cluster: bool) -> (Diagnosis, Option<Marks>) {
    match look(visit, is_cluster).await {
        Ok(seen) => (seen.diagnosis(), Some(seen.memory)),
        Err(error) => {
            let message = format!("those named tg:* cannot be looked at ({})", why(&error));
            (Diagnosis::unknown(CODE, message, remedy(&error)), None)
        }
    }
}

/// What to do so that they can be.
fn remedy(error: &StoreError) -> &'static str {
    match error {
        StoreError::NotAllowed { reason, .. } => {
            let reason = reason.to_lowercase();
            let names = |command: &str| {
                ["'", "`"].iter().any(|quote| reason.contains(&format!("{quote}{command}")))
            };
            match names("evalsha") || names("script") {
                true => {
                    "allow `+evalsha +script|load`, without which nothing can be decided either"
                }
                false => "allow `+scan +type` if they should be; nothing else needs it",
            }
        }
        StoreError::ClusterDown { .. } => {
            "mend the Cluster, see CLUSTER INFO; and look again when it is well"
        }
        StoreError::Timeout { .. } | StoreError::Unreachable { .. } | StoreError::Loading => {
            "look again when it answers"
        }
        _ => "see what the server's log says",
    }
}

async fn look(visit: &RedisVisit, is_cluster: bool) -> Result<Seen, StoreError> {
    let mut seen = Seen::default();
    let loaded = visit.ask(&["SCRIPT", "LOAD", SCRIPT]).await?;
    let script = loaded.first().map_or("", String::as_str);
    let mut cursor = "0".to_owned();
    for _ in 0..ROUNDS {
        let answer = visit.ask(&["SCAN", &cursor, "MATCH", "tg:{*", "COUNT", AT_ONCE]).await?;
        let (next, names) =
            answer.split_first().map_or(("0", &[][..]), |(next, names)| (next, names));
        seen.look_at(visit, script, names).await?;
        if next == "0" {
            seen.is_all = true;
            break;
        }
        cursor = next.to_owned();
    }
    // It stands alone among millions, and everything depends on it. In a Cluster each slot has one.
    if !is_cluster {
        seen.look_at(visit, script, &[MARK.to_owned()]).await?;
    }
    Ok(seen)
}

/// Keys that were looked at.
#[derive(Clone, Debug, Default)]
struct Seen {
    count: usize,
    /// Those that are not ours, and the first few of them.
    wrong: usize,
    examples: Vec<String>,
    /// Those that an older version has written, the first few of them, and in how many milliseconds the
    /// last of those goes away whose time is known.
    older: usize,
    older_examples: Vec<String>,
    older_end_in: Option<u64>,
    /// The first few marks that are none.
    marks: Vec<String>,
    /// What the others say.
    memory: Marks,
    is_all: bool,
}

impl Seen {
    /// Asks of which kind each is and how it begins, which is one step: counters come, go and change
    /// while somebody looks.
    async fn look_at(
        &mut self,
        visit: &RedisVisit,
        script: &str,
        names: &[String],
    ) -> Result<(), StoreError> {
        let commands: Vec<_> = names.iter().map(|name| ["EVALSHA", script, "1", name]).collect();
        let commands: Vec<&[&str]> = commands.iter().map(|command| &command[..]).collect();
        for (name, reply) in names.iter().zip(visit.ask_all(&commands).await?) {
            match reply {
                Ok(texts) => match &texts[..] {
                    [kind, begin, left] => self.note(name, kind, begin, left.parse().ok()),
                    other => {
                        let reason = format!("a script said {other:?} of `{name}`");
                        return Err(StoreError::Refused { reason });
                    }
                },
                // Another server of the Cluster has it by now.
                Err(StoreError::ClusterDown { reason })
                    if ["MOVED", "ASK"].iter().any(|word| reason.starts_with(word)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// `left` is in how many milliseconds it goes away, if that was told.
    fn note(&mut self, name: &str, kind: &str, begin: &str, left: Option<u64>) {
        // One that has ended meanwhile is of no kind.
        if kind == "none" {
            return;
        }
        let is_mark = name == MARK || name.ends_with(MARK_OF_SLOT);
        let is_ours = match kind {
            "string" if is_mark => is_mark_text(begin),
            _ if is_mark => false,
            "string" => is_counter_text(begin),
            "hash" => begin == "2",
            "list" => begin.starts_with("log 1 "),
            _ => false,
        };
        self.count += 1;
        if is_ours {
            if is_mark {
                self.memory.note(begin);
            }
            return;
        }
        if kind == OLDER && !is_mark {
            self.older += 1;
            self.older_end_in = self.older_end_in.max(left);
            if self.older_examples.len() < EXAMPLES {
                self.older_examples.push(format!("`{name}`"));
            }
            return;
        }
        self.wrong += 1;
        let named = if is_mark { &mut self.marks } else { &mut self.examples };
        if named.len() < EXAMPLES {
            named.push(format!("`{name}` is a {kind}"));
        }
    }

    fn diagnosis(&self) -> Diagnosis {
        let Self { count, wrong, .. } = self;
        let of = if self.is_all { "all" } else { "those that were looked at, not all" };
        if !self.marks.is_empty() {
            return Diagnosis::problem(
                CODE,
                format!(
                    "{}, and not the mark that the store leaves there: it decides nothing about keys \
                     of this memory",
                    self.marks.join(", ")
                ),
                "find out who writes it, and RENAME it or give the limits another database; one that \
                 an old version left may go (DEL), which counts as a loss of memory",
            );
        }
        if *wrong == 0 && self.older > 0 {
            return self.diagnosis_of_older(of);
        }
        if *wrong == 0 {
            let message = format!("{count} under names of ours, tg:*, and nothing else ({of})");
            return Diagnosis::ok(CODE, message);
        }
        Diagnosis::warning(
            CODE,
            format!(
                "{wrong} of {count} keys under names of ours, tg:* ({of}), hold something else, and \
                 their limits cannot be counted: {}{}",
                self.examples.join(", "),
                match self.older {
                    0 => String::new(),
                    older => format!("; {older} more were written by an older version of Tollgate"),
                }
            ),
            "find out who writes them; remove them (DEL), or give the limits another database",
        )
    }

    fn diagnosis_of_older(&self, of: &str) -> Diagnosis {
        let Self { count, older, .. } = self;
        let ends = self.older_end_in.map_or_else(String::new, |left| {
            format!(", the last of them in {}", Lasting(Duration::from_millis(left)))
        });
        Diagnosis::warning(
            CODE,
            format!(
                "{older} of {count} keys under names of ours, tg:* ({of}), were written by an older \
                 version of Tollgate, and their limits cannot be counted until they are gone: {}",
                self.older_examples.join(", ")
            ),
            format!(
                "end all nodes of that version: they go away by themselves then{ends}; or remove \
                 them (DEL), and what was spent is forgotten"
            ),
        )
    }
}

/// Whether a text is a counter of which nothing is lent: its kind, the memory, and numbers.
fn is_counter_text(text: &str) -> bool {
    let mut words = text.splitn(3, ' ');
    let is_kind = words.next().is_some_and(|kind| ["bucket", "window", "sliding"].contains(&kind));
    is_kind && words.next().is_some_and(is_number) && words.next().is_some()
}

/// Whether a text is the mark of a memory.
pub(super) fn is_mark_text(text: &str) -> bool {
    let mut words = text.split(' ');
    let is_process = words.next() == Some("process") && words.next().is_some();
    let mut names =
        ["epoch", "lost", "kept", "moved", "beat", "until", "since", "noted"].into_iter();
    // Several pairs, or none.
    let are_pairs = |word: &str| word == "-" || word.split([':', ',']).all(is_number);
    let is_value = |name: &str, word: &str| match name {
        "until" => are_pairs(word),
        _ => is_number(word),
    };
    is_process
        && names.all(|name| {
            words.next() == Some(name) && words.next().is_some_and(|word| is_value(name, word))
        })
        && words.next().is_none()
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

const CODE: &str = "keys";

/// The mark of a memory, and what the names of those end with that slots of a Cluster have.
pub(super) const MARK: &str = "tg:epoch";
const MARK_OF_SLOT: &str = "}:epoch";

/// As many keys, ours or not, are looked at in one round, about.
const AT_ONCE: &str = "500";
const ROUNDS: usize = 10;

/// Of which kind a key is, and what tells one of ours from others. Of a text that is its beginning,
/// however long it is: no mark is longer.
const SCRIPT: &str = "\
local kind, begin = redis.call('TYPE', KEYS[1]).ok, nil
if kind == 'string' then
    begin = redis.call('GETRANGE', KEYS[1], 0, 510)
elseif kind == 'hash' then
    begin = redis.call('HGET', KEYS[1], 'v')
    if begin == '1' and redis.call('HEXISTS', KEYS[1], 'escrow') == 1 then kind = 'older' end
elseif kind == 'list' then
    begin = redis.call('LINDEX', KEYS[1], 0)
end
local left = kind == 'older' and redis.pcall('PTTL', KEYS[1])
return { kind, string.sub(begin or '', 1, 511), tostring(type(left) == 'number' and left or '') }";

/// What the script calls a hash with books of a former version. How long it is kept not everybody may ask.
const OLDER: &str = "older";

/// So many keys are named.
const EXAMPLES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Grade;

    #[test]
    fn what_the_scripts_write_is_ours() {
        let mut seen = Seen { is_all: true, ..Seen::default() };
        seen.note("tg:{a}:r:0", "none", "", None);
        assert_eq!(seen.count, 0, "it has ended");
        for (name, kind, begin) in [
            ("tg:{a}:r:1", "string", "bucket 1700000000000000 \0\0\u{fffd}\0\0 \0\0\0\0"),
            ("tg:{a}:r:2", "string", "window 17 18 0 0000000000000003 17"),
            ("tg:{a}:r:3", "string", "sliding 17 18 0 0000000000000003 0000000000000004 17"),
            ("tg:{a}:r:4", "hash", "2"),
            ("tg:{a}:r:permits", "hash", "2"),
            ("tg:{a}:r:5", "list", "log 1 17 18 3"),
            (
                "tg:epoch",
                "string",
                "process 5f3a epoch 17 lost 0 kept 0 moved 0 beat 18 until - since 17 noted 0",
            ),
            (
                "tg:{7}:epoch",
                "string",
                "process 5f3a epoch 17 lost 16 kept 1 moved 0 beat 18 until 17:15 since 9 noted 1",
            ),
            (
                "tg:{8}:epoch",
                "string",
                "process 5f3a epoch 17 lost 16 kept 15 moved 2 beat 18 until 17:15 since 9 noted 1",
            ),
        ] {
            seen.note(name, kind, begin, None);
            assert_eq!((seen.diagnosis().grade, seen.wrong), (Grade::Ok, 0), "{name}: {begin}");
        }
    }

    #[test]
    fn a_few_of_those_that_are_not_are_named() {
        let others = [
            ("string", ""),
            ("string", "1"),
            ("string", "bucket of flowers"),
            ("string", "window 17"),
            (
                "string",
                "process 5f3a epoch 17 lost 0 kept 0 moved 0 beat 18 until - since 17 noted 0",
            ),
            ("hash", ""),
            ("hash", "1"),
            ("list", "log 2 17"),
            ("zset", "1"),
        ];
        let mut seen = Seen { is_all: true, ..Seen::default() };
        seen.note("tg:{a}:r:1", "hash", "2", None);
        for (at, (kind, begin)) in others.into_iter().enumerate() {
            seen.note("tg:{a}:r:2", kind, begin, None);
            assert_eq!(seen.wrong, at + 1, "{kind}: {begin}");
        }
        let found = seen.diagnosis();
        assert_eq!(found.grade, Grade::Warning);
        assert!(found.message.contains("9 of 10"), "{found:?}");
        assert_eq!(found.message.matches("is a string").count(), EXAMPLES);
    }

    #[test]
    fn what_an_older_version_wrote_is_told_apart_and_when_it_goes() {
        let mut seen = Seen { is_all: true, ..Seen::default() };
        seen.note("tg:{a}:r:1", "hash", "2", None);
        seen.note("tg:{a}:r:2", OLDER, "1", Some(7_200_000));
        seen.note("tg:{a}:r:3", OLDER, "1", None);
        let found = seen.diagnosis();
        assert_eq!(found.grade, Grade::Warning);
        assert!(found.message.starts_with("2 of 3 keys") && found.message.contains("`tg:{a}:r:3`"));
        assert!(found.remedy.contains("the last of them in 2 h"), "{found:?}");
        seen.note("tg:{a}:r:4", "hash", "", None);
        let found = seen.diagnosis();
        assert!(found.message.starts_with("1 of 4 keys"), "{found:?}");
        assert!(found.message.contains("2 more were written by an older version"), "{found:?}");
    }

    #[test]
    fn what_keeps_keys_from_being_looked_at_has_its_own_remedy() {
        let not_allowed = |reason: &str| {
            let (address, reason) = ("h:1".to_owned(), reason.to_owned());
            remedy(&StoreError::NotAllowed { address, reason })
        };
        for reason in [
            "NOPERM User u has no permissions to run the 'scan' command",
            "ERR The user executing the script can't run this command or subcommand script: 5f, on \
             @user_script:1.",
        ] {
            assert!(not_allowed(reason).contains("+scan +type"), "{reason}");
        }
        for reason in [
            "NOPERM User u has no permissions to run the 'evalsha' command",
            "NOPERM this user has no permissions to run the 'script|load' command or its subcommand",
            "ERR unknown command `EVALSHA`, with args beginning with: ",
        ] {
            assert!(not_allowed(reason).contains("+evalsha"), "{reason}");
        }
        let reason = "CLUSTERDOWN The cluster is down".to_owned();
        assert!(remedy(&StoreError::ClusterDown { reason }).contains("CLUSTER INFO"));
    }

    #[test]
    fn a_mark_that_is_none_is_a_problem() {
        for (name, kind, begin) in [
            ("tg:epoch", "hash", "2"),
            ("tg:epoch", "string", "bucket 17 "),
            (
                "tg:{7}:epoch",
                "string",
                "process 5f3a epoch 17 lost 0 kept 0 moved 0 beat 18 until - since 17 noted 0 more",
            ),
            (
                "tg:{7}:epoch",
                "string",
                "process 5f3a epoch x lost 0 kept 0 moved 0 beat 18 until - since 17 noted 0",
            ),
        ] {
            let mut seen = Seen::default();
            seen.note(name, kind, begin, None);
            let found = seen.diagnosis();
            assert_eq!(found.grade, Grade::Problem, "{name}: {begin}");
            assert!(found.message.starts_with(&format!("`{name}` is a {kind}, and not")));
        }
    }
}
