//! Whether the store's scripts may run.

use tollgate_store::{RedisVisit, StoreError};

use super::diagnosis::Diagnosis;
use super::reach::NEEDED;

/// Runs a script that does what those of the store do, on a key that is gone when it ends: in the
/// first of these slots that is the server's own.
pub(super) async fn ask(visit: &RedisVisit, slots: &[u16]) -> Diagnosis {
    let loaded = visit.ask(&["SCRIPT", "LOAD", SCRIPT]).await;
    let hash = match loaded.as_deref() {
        Ok([hash, ..]) => hash,
        Ok([]) => return bad("SCRIPT LOAD", "it named no script"),
        Err(error) => return refused("SCRIPT LOAD", error),
    };
    for slot in slots {
        let key = RedisVisit::key_in(*slot);
        match visit.ask(&["EVALSHA", hash, "1", &key]).await {
            Ok(answer) if answer == ["1"] => return Diagnosis::ok(CODE, GOOD),
            Ok(answer) => return bad("EVALSHA", &format!("the script said {answer:?}, not 1")),
            Err(StoreError::ClusterDown { reason }) if reason.starts_with("MOVED") => {}
            Err(error) => return refused("EVALSHA", &error),
        }
    }
    Diagnosis::unknown(CODE, "no slot of its own was found to try one in", "")
}

fn refused(command: &str, error: &StoreError) -> Diagnosis {
    match error {
        StoreError::NotAllowed { reason, .. } => Diagnosis::problem(
            CODE,
            format!("{command} is not allowed ({reason}): the store cannot decide anything"),
            NEEDED,
        ),
        StoreError::OutOfMemory { reason } => Diagnosis::problem(
            CODE,
            format!("{command} is refused, because there is no memory left ({reason})"),
            "give the server more memory (`maxmemory`), or remove what else is in it",
        ),
        StoreError::ReadOnly { reason } => Diagnosis::problem(
            CODE,
            format!("{command} is refused, because the server takes no writes ({reason})"),
            "mend what it complains about: its disk, or the replicas that it waits for",
        ),
        StoreError::ClusterDown { reason } => Diagnosis::problem(
            CODE,
            format!("{command} is refused by the Cluster ({reason})"),
            "mend the Cluster; see CLUSTER INFO",
        ),
        error => bad(command, &error.to_string()),
    }
}

fn bad(command: &str, why: &str) -> Diagnosis {
    let message = format!("{command} does not work ({why}): the store cannot decide anything");
    Diagnosis::problem(CODE, message, "see what the server's log says")
}

const CODE: &str = "scripts";

const GOOD: &str = "SCRIPT LOAD and EVALSHA work, with all commands that are needed";

/// Every command that one of the store's scripts gives.
const SCRIPT: &str = "\
local key = KEYS[1]
redis.call('TIME')
redis.call('DEL', key)
redis.call('HSET', key, 'a', 1, 'b', 2)
redis.call('PEXPIRE', key, 10000)
redis.call('HMGET', key, 'a', 'b')
redis.call('HGET', key, 'a')
redis.call('HGETALL', key)
redis.call('HDEL', key, 'a')
redis.call('DEL', key)
redis.call('RPUSH', key, 'a')
redis.call('PEXPIRE', key, 10000)
redis.call('LSET', key, 0, 'c')
redis.call('LINDEX', key, 0)
redis.call('LRANGE', key, 0, 1)
redis.call('LTRIM', key, 0, 0)
redis.call('LREM', key, 1, 'x')
redis.call('DEL', key)
redis.call('SET', key, 'a', 'PX', 10000)
redis.call('SETRANGE', key, 0, 'b')
redis.call('GET', key)
redis.call('MGET', key)
local found = redis.call('EXISTS', key)
redis.call('DEL', key)
return found";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The commands that a script gives, or tries to.
    fn commands(script: &str) -> BTreeSet<&str> {
        let after = |word| script.split(word).skip(1);
        let calls = after("call('").chain(after("try('"));
        calls.filter_map(|rest| rest.split('\'').next()).collect()
    }

    #[test]
    fn the_script_gives_the_commands_of_the_store_and_no_others() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../store/src/redis/lua");
        let files = std::fs::read_dir(folder).unwrap();
        let all: String =
            files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
        assert_eq!(commands(SCRIPT), commands(&all));
    }
}
