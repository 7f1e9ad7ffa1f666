//! What a server is, and whether it takes writes.

use tollgate_store::RedisVisit;

use super::diagnosis::Diagnosis;
use super::info::Info;

pub(super) fn version(info: &Info) -> Diagnosis {
    const CODE: &str = "version";
    let least = RedisVisit::LEAST_MAJOR;
    if let Some(version) = info.text("valkey_version") {
        return Diagnosis::ok(CODE, format!("Valkey {version}"));
    }
    let version = info.text("redis_version").unwrap_or("of an unknown version");
    if let Some(other) = info.text("dragonfly_version") {
        return Diagnosis::warning(
            CODE,
            format!(
                "Dragonfly {other}, which says it is Redis {version}: nobody has tested it here"
            ),
            "use Redis or Valkey for limits that must hold",
        );
    }
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(major) if major >= least => Diagnosis::ok(CODE, format!("Redis {version}")),
        _ => Diagnosis::problem(
            CODE,
            format!(
                "Redis {version}: a script of it cannot read the clock and write, so the store refuses it"
            ),
            format!("use Redis from {least}.0 on, or Valkey"),
        ),
    }
}

/// Whether it decides. Where a Cluster was named, others do if it does not.
pub(super) fn role(info: &Info, is_cluster: bool) -> Diagnosis {
    const CODE: &str = "role";
    if info.is("loading", "1") {
        let left = info.text("loading_eta_seconds").unwrap_or("some");
        return Diagnosis::problem(
            CODE,
            format!("it is reading its data set, for {left} seconds more, and answers nobody"),
            "wait until it has, and look again",
        );
    }
    if info.is("role", "slave") && is_cluster {
        return Diagnosis::ok(CODE, "it is a replica, and knows the primaries of its Cluster");
    }
    if info.is("role", "slave") {
        let name = |name| info.text(name).unwrap_or("?");
        let (host, port) = (name("master_host"), name("master_port"));
        return Diagnosis::problem(
            CODE,
            format!("it is a replica, and takes no writes; its primary is {host}:{port}"),
            format!(
                "name the primary, {host}:{port}, or redis+sentinel:// or redis+cluster://, which \
                 find it, also after another has taken over"
            ),
        );
    }
    if info.is("role", "sentinel") || info.is("redis_mode", "sentinel") {
        return Diagnosis::problem(
            CODE,
            "it is a Sentinel, which keeps nothing",
            "write redis+sentinel:// and the name of the service behind the hosts: /mymaster",
        );
    }
    if info.is("cluster_enabled", "1") && !is_cluster {
        return Diagnosis::problem(
            CODE,
            "it is one of a Cluster: keys whose slot is another's are refused",
            "write redis+cluster:// in place of redis://",
        );
    }
    let replicas = match info.text("connected_slaves").unwrap_or("0") {
        "0" => "no replica follows it".to_owned(),
        "1" => "1 replica follows it".to_owned(),
        count => format!("{count} replicas follow it"),
    };
    Diagnosis::ok(CODE, format!("it is a primary; {replicas}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Grade;

    fn info(lines: &[&str]) -> Info {
        Info::new(lines.join("\r\n"))
    }

    #[test]
    fn old_servers_are_a_problem_and_others_have_their_name() {
        let grade =
            |version: &str| self::version(&info(&[&format!("redis_version:{version}")])).grade;
        assert_eq!(grade("7.0.15"), Grade::Ok);
        assert_eq!(grade("6.0.0"), Grade::Ok);
        for old in ["5.0.14", "2.4.1", "x", ""] {
            assert_eq!(grade(old), Grade::Problem, "{old}");
        }
        let valkey = version(&info(&["redis_version:7.2.4", "valkey_version:8.1.0"]));
        assert_eq!((valkey.grade, &*valkey.message), (Grade::Ok, "Valkey 8.1.0"));
        let other = version(&info(&["redis_version:7.2.0", "dragonfly_version:df-v1"]));
        assert_eq!(other.grade, Grade::Warning);
    }

    #[test]
    fn whoever_does_not_decide_is_a_problem() {
        for lines in [
            &["role:slave", "master_host:h", "master_port:1"][..],
            &["role:master", "loading:1", "loading_eta_seconds:7"],
            &["role:master", "redis_mode:sentinel"],
            &["role:master", "cluster_enabled:1"],
        ] {
            let found = role(&info(lines), false);
            assert_eq!(found.grade, Grade::Problem, "{found:?}");
            assert!(!found.remedy.is_empty());
        }
        for role in ["role:master", "role:slave"] {
            let found = self::role(&info(&[role, "cluster_enabled:1"]), true);
            assert_eq!(found.grade, Grade::Ok, "{found:?}");
        }
        let followed = role(&info(&["role:master", "connected_slaves:2"]), false);
        assert!(followed.message.contains("2 replicas"), "{followed:?}");
    }
}
