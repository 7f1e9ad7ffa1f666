//! What a primary does that was cut off while another took its place.
//!
//! Until it hears of the other it goes on, and so do nodes that were idle meanwhile and still have a connection to
//! it: both lend. A primary that needs replicas to write stops by itself when it has none.

use tollgate_store::RedisVisit;

use super::diagnosis::{Diagnosis, why};
use super::info::Info;
use super::memory::config;

/// Nothing where no other server can take over.
pub(super) async fn ask(visit: &RedisVisit, info: &Info, is_watched: bool) -> Option<Diagnosis> {
    let has_replicas = info.number("connected_slaves").is_some_and(|count: u64| count > 0);
    if info.is("role", "slave") || !(has_replicas || is_watched) {
        return None;
    }
    let number = async |name| {
        let text = config(visit, name).await.map_err(|error| why(&error))?;
        text.and_then(|text| text.parse().ok()).ok_or_else(|| "there is no such setting".to_owned())
    };
    let needed = number("min-replicas-to-write").await;
    let lag = number("min-replicas-max-lag").await;
    Some(match (needed, lag) {
        (Ok(needed), Ok(lag)) => {
            diagnosis(needed, lag, info.text("redis_version").unwrap_or_default())
        }
        (Err(reason), _) | (_, Err(reason)) => Diagnosis::unknown(
            CODE,
            format!(
                "whether a primary that is cut off from its replicas goes on to lend is not told: {reason}"
            ),
            "see yourself that `min-replicas-to-write` is not 0",
        ),
    })
}

/// Both are switched off by 0.
fn diagnosis(needed: u64, lag: u64, version: &str) -> Diagnosis {
    if needed == 0 || lag == 0 {
        return Diagnosis::warning(
            CODE,
            "a primary that is cut off from its replicas goes on to lend (`min-replicas-to-write` is 0): when \
             another has taken its place, there are two until it hears of that, and limits are passed by \
             what the old one lends",
            "CONFIG SET min-replicas-to-write 1 and min-replicas-max-lag 10, and in the files of all its \
             replicas as well. What it costs: without a replica that follows it takes no writes, and \
             `on_store_failure` decides, so have two",
        );
    }
    if parts(version).is_none_or(|parts| parts >= HELD_SINCE) {
        let message = format!(
            "it takes no writes {lag} s after fewer than {needed} of its replicas follow it"
        );
        return Diagnosis::ok(CODE, message);
    }
    Diagnosis::warning(
        CODE,
        format!(
            "`min-replicas-to-write` is {needed}, and scripts of Redis {version} may write all the same: a primary \
             that is cut off from its replicas goes on to lend"
        ),
        "take Redis 6.2.14 or a later one, or Valkey, which keep scripts from it as well",
    )
}

fn parts(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

const CODE: &str = "cut-off";

/// The first version in which scripts were seen to write only where others may.
const HELD_SINCE: [u32; 3] = [6, 2, 14];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Grade;

    #[test]
    fn a_primary_that_needs_nobody_may_be_one_of_two() {
        for (needed, lag, grade) in
            [(0, 10, Grade::Warning), (1, 0, Grade::Warning), (1, 10, Grade::Ok)]
        {
            let found = diagnosis(needed, lag, "7.0.15");
            assert_eq!(found.grade, grade, "{needed} {lag}: {found:?}");
            assert_eq!(found.remedy.contains("on_store_failure"), grade == Grade::Warning);
        }
    }

    #[test]
    fn an_old_one_may_let_scripts_write_all_the_same() {
        for (version, grade) in [
            ("6.0.16", Grade::Warning),
            ("6.2.2", Grade::Warning),
            ("6.2.14", Grade::Ok),
            ("7.0.0", Grade::Ok),
            ("of a kind of its own", Grade::Ok),
        ] {
            let found = diagnosis(1, 10, version);
            assert_eq!(found.grade, grade, "{version}: {found:?}");
            assert_eq!(found.remedy.contains("6.2.14"), grade == Grade::Warning);
        }
    }
}
