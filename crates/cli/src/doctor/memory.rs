//! Whether counters stay: what is dropped when memory runs out, and when that is.

use tollgate_store::{RedisVisit, StoreError};

use super::diagnosis::{Diagnosis, bytes, why};
use super::info::Info;

/// How memory is bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// Bytes; 0 is no bound.
    most: Option<u64>,
    policy: Option<String>,
    /// Why one of them is missing.
    missing: String,
}

impl Settings {
    /// `INFO` has both; where it has been trimmed, `CONFIG` is asked, which few may.
    pub(super) async fn ask(visit: &RedisVisit, info: &Info) -> Self {
        let mut settings = Self {
            most: info.number("maxmemory"),
            policy: info.text("maxmemory_policy").map(str::to_owned),
            missing: String::new(),
        };
        if settings.most.is_none() {
            let answer = settings.config(visit, "maxmemory").await;
            settings.most = answer.and_then(|text| text.parse().ok());
        }
        if settings.policy.is_none() {
            settings.policy = settings.config(visit, "maxmemory-policy").await;
        }
        settings
    }

    async fn config(&mut self, visit: &RedisVisit, name: &str) -> Option<String> {
        match config(visit, name).await {
            Ok(value) => value,
            Err(error) => {
                self.missing = why(&error);
                None
            }
        }
    }
}

/// A setting of the server, if it has it and tells.
pub(super) async fn config(visit: &RedisVisit, name: &str) -> Result<Option<String>, StoreError> {
    let answer = visit.ask(&["CONFIG", "GET", name]).await?;
    Ok(answer.into_iter().nth(1))
}

pub(super) fn eviction(info: &Info, settings: &Settings) -> Diagnosis {
    const CODE: &str = "eviction";
    let Some(policy) = settings.policy.as_deref() else {
        return Diagnosis::unknown(
            CODE,
            format!(
                "which keys are dropped when memory runs out is not told: {}",
                settings.missing
            ),
            "see yourself that `maxmemory-policy` is `noeviction`",
        );
    };
    let most = match settings.most {
        _ if policy == "noeviction" => {
            return Diagnosis::ok(CODE, "noeviction: no counter is dropped");
        }
        Some(0) => {
            let message = format!("{policy}, which drops nothing as long as maxmemory is 0");
            return Diagnosis::ok(CODE, message);
        }
        Some(most) => bytes(most),
        None => "not told".to_owned(),
    };
    let dropped = match info.number::<u64>("evicted_keys") {
        Some(count) if count > 0 => format!("; {count} were dropped already"),
        _ => String::new(),
    };
    // Those that drop keys with a time to live alone drop ours: all of them have one.
    Diagnosis::problem(
        CODE,
        format!(
            "maxmemory-policy is {policy} and maxmemory is {most}: when that is full counters are \
             dropped, and whoever had spent their budget has all of it again{dropped}"
        ),
        "CONFIG SET maxmemory-policy noeviction, and in its file; if other software needs keys to \
         be dropped, give the limits a server of their own",
    )
}

pub(super) fn used(info: &Info, settings: &Settings) -> Diagnosis {
    const CODE: &str = "memory";
    let Some(used) = info.number::<u64>("used_memory") else {
        return Diagnosis::unknown(CODE, "how much is used is not told", "look at INFO memory");
    };
    let most = settings.most.filter(|most| *most > 0);
    let all = most.or_else(|| info.number("total_system_memory")).filter(|all| *all > 0);
    let of = match (most, all) {
        (Some(most), _) => format!(" of {}", bytes(most)),
        (None, Some(all)) => {
            format!(", without a bound (maxmemory is 0), on a machine with {}", bytes(all))
        }
        (None, None) => ", without a bound that is known".to_owned(),
    };
    let share = all.map_or(0.0, |all| used as f64 / all as f64);
    let figures = format!("{} used{of} ({:.0} %)", bytes(used), share * 100.0);
    let remedy = "raise `maxmemory`, or remove what else is in it; INFO keyspace and `redis-cli \
                  --bigkeys` tell what is there";
    if most.is_some() && share >= 1.0 {
        let message = format!("{figures}: new keys are refused, and left to the rule's policy");
        return Diagnosis::problem(CODE, message, remedy);
    }
    if share >= NEARLY_FULL {
        let then = match most {
            Some(_) => "soon new keys are refused, and left to the rule's policy",
            None => "soon the system ends it, or swaps, which is slower than any timeout",
        };
        return Diagnosis::warning(CODE, format!("{figures}: {then}"), remedy);
    }
    let ratio = info.number::<f64>("mem_fragmentation_ratio").unwrap_or_default();
    if ratio >= MUCH_FRAGMENTED && used >= WORTH_A_WORD {
        return Diagnosis::warning(
            CODE,
            format!("{figures}, and the process takes {ratio:.1} times as much"),
            "CONFIG SET activedefrag yes, or restart it when that suits",
        );
    }
    Diagnosis::ok(CODE, figures)
}

/// The share of memory from which on it is warned of.
const NEARLY_FULL: f64 = 0.9;

const MUCH_FRAGMENTED: f64 = 1.5;

/// With less in use, most of a process is not data.
const WORTH_A_WORD: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Grade;

    fn settings(most: u64, policy: &str) -> Settings {
        Settings { most: Some(most), policy: Some(policy.to_owned()), missing: String::new() }
    }

    #[test]
    fn every_policy_that_drops_keys_is_a_problem_where_there_is_a_bound() {
        let info = Info::new("evicted_keys:7\r\n".into());
        for policy in ["allkeys-lru", "volatile-lru", "volatile-ttl", "allkeys-random"] {
            let found = eviction(&info, &settings(1_000_000, policy));
            assert_eq!(found.grade, Grade::Problem, "{found:?}");
            assert!(found.message.contains("7 were dropped"), "{found:?}");
            assert_eq!(eviction(&info, &settings(0, policy)).grade, Grade::Ok);
        }
        assert_eq!(eviction(&info, &settings(1_000_000, "noeviction")).grade, Grade::Ok);
        let unknown = Settings { missing: "NOPERM".into(), ..Settings::default() };
        let found = eviction(&info, &unknown);
        assert_eq!(found.grade, Grade::Unknown);
        assert!(found.message.contains("NOPERM"), "{found:?}");
    }

    #[test]
    fn memory_is_warned_of_before_it_is_full() {
        let grade = |used: u64, most: u64| {
            let info = Info::new(format!("used_memory:{used}\r\ntotal_system_memory:1000\r\n"));
            self::used(&info, &settings(most, "noeviction")).grade
        };
        assert_eq!(grade(80, 100), Grade::Ok);
        assert_eq!(grade(90, 100), Grade::Warning);
        assert_eq!(grade(100, 100), Grade::Problem);
        assert_eq!(grade(899, 0), Grade::Ok);
        assert_eq!(grade(1000, 0), Grade::Warning);
        assert_eq!(used(&Info::new(String::new()), &Settings::default()).grade, Grade::Unknown);
    }

    #[test]
    fn fragmentation_is_worth_a_word_if_it_is_large() {
        let grade = |used: u64, ratio: &str| {
            let info = format!("used_memory:{used}\r\nmem_fragmentation_ratio:{ratio}\r\n");
            self::used(&Info::new(info), &settings(0, "noeviction")).grade
        };
        assert_eq!(grade(1_000_000, "13.2"), Grade::Ok);
        assert_eq!(grade(200_000_000, "1.1"), Grade::Ok);
        assert_eq!(grade(200_000_000, "1.9"), Grade::Warning);
    }
}
