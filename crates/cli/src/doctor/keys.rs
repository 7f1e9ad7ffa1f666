//! Whether something else stands where counters should.

use tollgate_store::{RedisVisit, StoreError};

use super::diagnosis::{Diagnosis, why};

/// Looks at some keys with our names. There may be millions, so not at all of them.
pub(super) async fn ask(visit: &RedisVisit) -> Diagnosis {
    match look(visit).await {
        Ok(seen) => seen.diagnosis(),
        Err(error) => Diagnosis::unknown(
            CODE,
            format!("those named tg:* cannot be looked at ({})", why(&error)),
            "allow `+scan +type` if they should be; nothing else needs it",
        ),
    }
}

#[derive(Clone, Debug, Default)]
struct Seen {
    /// Keys of ours.
    ours: usize,
    /// Those of a wrong type.
    wrong: usize,
    examples: Vec<String>,
    is_all: bool,
}

async fn look(visit: &RedisVisit) -> Result<Seen, StoreError> {
    let mut seen = Seen::default();
    let mut cursor = "0".to_owned();
    for _ in 0..ROUNDS {
        let answer = visit.ask(&["SCAN", &cursor, "MATCH", "tg:*", "COUNT", AT_ONCE]).await?;
        let (next, names) =
            answer.split_first().map_or(("0", &[][..]), |(next, names)| (next, names));
        let commands: Vec<_> = names.iter().map(|name| ["TYPE", name.as_str()]).collect();
        let commands: Vec<&[&str]> = commands.iter().map(|command| &command[..]).collect();
        for (name, kind) in names.iter().zip(visit.ask_all(&commands).await?) {
            seen.note(name, kind?.first().map_or("none", String::as_str));
        }
        if next == "0" {
            seen.is_all = true;
            break;
        }
        cursor = next.to_owned();
    }
    Ok(seen)
}

impl Seen {
    fn note(&mut self, name: &str, kind: &str) {
        // One that has ended meanwhile is of no type.
        if kind == "none" {
            return;
        }
        self.ours += 1;
        if kind != "hash" && kind != "list" {
            self.wrong += 1;
            if self.examples.len() < EXAMPLES {
                self.examples.push(format!("`{name}` is a {kind}"));
            }
        }
    }

    fn diagnosis(&self) -> Diagnosis {
        let Self { ours, wrong, .. } = self;
        let of = if self.is_all { "all" } else { "those that were looked at, not all" };
        if *wrong == 0 {
            return Diagnosis::ok(CODE, format!("{ours} named tg:*, none of a wrong type ({of})"));
        }
        Diagnosis::warning(
            CODE,
            format!(
                "{wrong} of {ours} keys named tg:* ({of}) are of a type that is not ours, and their \
                 limits cannot be counted: {}",
                self.examples.join(", ")
            ),
            "find out who writes them; remove them (DEL), or give the limits another database",
        )
    }
}

const CODE: &str = "keys";

/// As many keys, ours or not, are looked at in one round, about.
const AT_ONCE: &str = "500";
const ROUNDS: usize = 10;

/// So many keys are named.
const EXAMPLES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Grade;

    #[test]
    fn a_few_of_those_that_are_wrong_are_named() {
        let mut seen = Seen { is_all: true, ..Seen::default() };
        seen.note("tg:{a}:r:1", "hash");
        seen.note("tg:{a}:r:2", "list");
        seen.note("tg:{a}:r:3", "none");
        assert_eq!((seen.diagnosis().grade, seen.ours), (Grade::Ok, 2));
        for number in 0..9 {
            seen.note(&format!("tg:{number}"), "string");
        }
        let found = seen.diagnosis();
        assert_eq!(found.grade, Grade::Warning);
        assert!(found.message.contains("9 of 11"), "{found:?}");
        assert_eq!(found.message.matches("is a string").count(), EXAMPLES);
    }
}
