//! What is left after a restart.

use tollgate_store::RedisVisit;

use super::diagnosis::Diagnosis;
use super::info::Info;
use super::memory::config;

/// Nothing on disk is no problem: the store knows when a memory is new, and takes care.
pub(super) async fn ask(visit: &RedisVisit, info: &Info) -> Diagnosis {
    // Nobody but CONFIG tells whether there are snapshots.
    let snapshots = config(visit, "save").await.ok().flatten().map(|save| !save.is_empty());
    diagnosis(info, snapshots)
}

fn diagnosis(info: &Info, snapshots: Option<bool>) -> Diagnosis {
    for (name, what) in
        [("aof_last_write_status", "append-only file"), ("rdb_last_bgsave_status", "snapshot")]
    {
        if info.text(name).is_some_and(|status| status != "ok") {
            return Diagnosis::problem(
                CODE,
                format!("its last {what} could not be written: Redis may refuse all writes now"),
                "see what its log says, and that its disk is neither full nor read-only",
            );
        }
    }
    if info.is("aof_enabled", "1") {
        return Diagnosis::ok(CODE, format!("an append-only file; {AFTER_SOME}"));
    }
    match snapshots {
        Some(true) => Diagnosis::ok(CODE, format!("snapshots; {AFTER_SOME}{SINCE_SNAPSHOT}")),
        Some(false) => Diagnosis::ok(CODE, format!("nothing is kept on disk; {AFTER_NOTHING}")),
        None => Diagnosis::unknown(
            CODE,
            format!(
                "no append-only file; whether there are snapshots is not told. Without them, {AFTER_NOTHING}"
            ),
            "",
        ),
    }
}

const CODE: &str = "disk";

/// Nobody can tell a restart that has lost nothing from one that lacks the last moments.
const AFTER_SOME: &str = "a restart begins a new epoch, also one that loses nothing, and less is granted \
    than limits allow: a bucket grants nothing for up to 30 s and then refills from nothing (20/day: for \
    a day), a sliding log grants nothing for as long as it looks back, a window of up to a minute until it \
    ends; longer windows go on with what is on disk";

const SINCE_SNAPSHOT: &str = ", unless it was killed more than three seconds after the last snapshot: then \
    they count as used up until they end";

const AFTER_NOTHING: &str = "a restart begins a new epoch: servers that run on grant nothing that \
    may have been spent before, until it is back for certain, which takes a limit of a month the rest of \
    it; one that starts at that very moment may grant each key one budget more";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Grade;

    #[test]
    fn only_snapshots_close_long_windows() {
        let said = |info: &str| diagnosis(&Info::new(info.into()), Some(true)).message;
        assert!(said("aof_enabled:0").contains("used up until they end"));
        assert!(said("aof_enabled:1").ends_with("longer windows go on with what is on disk"));
    }

    #[test]
    fn only_a_disk_that_fails_is_a_problem() {
        let grade = |info: &str, snapshots| {
            let good = "rdb_last_bgsave_status:ok\r\naof_last_write_status:ok\r\n";
            diagnosis(&Info::new(format!("{info}\r\n{good}")), snapshots).grade
        };
        assert_eq!(grade("aof_enabled:1", None), Grade::Ok);
        assert_eq!(grade("aof_enabled:0", Some(false)), Grade::Ok);
        assert_eq!(grade("aof_enabled:0", Some(true)), Grade::Ok);
        assert_eq!(grade("aof_enabled:0", None), Grade::Unknown);
        assert_eq!(grade("rdb_last_bgsave_status:err", Some(true)), Grade::Problem);
        assert_eq!(grade("aof_last_write_status:err", None), Grade::Problem);
    }
}
