//! `tollgate doctor`: whether a store is a good place for counters, and what to do if it is not.
//!
//! Each check turns what a server says into a [`Diagnosis`]. Reading order: [`examine`], then the
//! checks: [`reach`], [`server`], [`timing`], [`script`], [`memory`], [`disk`], [`idle`], [`cut_off`],
//! [`keys`], [`epoch`], [`cluster`].

mod cluster;
mod cut_off;
mod diagnosis;
mod disk;
mod epoch;
mod idle;
mod info;
mod keys;
mod memory;
mod reach;
mod report;
mod script;
mod server;
mod timing;

use std::time::Duration;

use tollgate_store::{RedisConfig, RedisVisit, StoreError};

use self::cluster::Cluster;
use self::diagnosis::{Diagnosis, Grade};
use self::info::Info;
use self::timing::Expected;
use crate::certificates;
use crate::environment;
use crate::error::{Ending, Error};
use crate::flags::Doctor;

pub(crate) fn run(flags: &Doctor) -> Result<Ending, Error> {
    let from_environment = || environment::variable(STORE)?.into_string().ok();
    let url = flags.store.clone().or_else(from_environment).filter(|url| !url.is_empty());
    let url = url.ok_or(Error::Usage { message: NO_STORE, remedy: NAME_ONE })?;
    // Nobody can tell what of it is a password.
    if !url.contains("://") {
        return Err(Error::Usage { message: NO_SCHEME, remedy: NAME_ONE });
    }
    let root_certificate = flags.ca.as_deref().map(certificates::authority).transpose()?;
    let identity = match (&flags.cert, &flags.key) {
        (Some(cert), Some(key)) => Some(certificates::identity(cert, key)?),
        _ => None,
    };
    let expected = Expected::of(flags);
    let config = RedisConfig {
        timeout: PATIENCE.max(expected.timeout),
        connect_timeout: PATIENCE,
        root_certificate,
        identity,
        ..RedisConfig::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let found = runtime.map_err(Error::System)?.block_on(examine(&url, &config, &expected))?;
    report::print(&found, flags.output)?;
    let is_bad = found.iter().any(|one| one.grade == Grade::Problem);
    Ok(if is_bad { Ending::Findings } else { Ending::Good })
}

/// How a store was named, and what nodes expect of it.
struct Way<'a> {
    is_cluster: bool,
    /// Whether Sentinels watch it.
    is_watched: bool,
    is_tls: bool,
    expected: &'a Expected,
}

/// Everything that is found, about the whole first and then about each server.
async fn examine(
    url: &str,
    config: &RedisConfig,
    expected: &Expected,
) -> Result<Vec<Diagnosis>, Error> {
    let visit = match RedisVisit::open(url, config.clone()).await {
        Ok(visit) => visit,
        Err(error @ (StoreError::Address { .. } | StoreError::NoTls { .. })) => {
            return Err(error.into());
        }
        Err(error) => {
            let found = reach::failed(&error, speaks_tls(url)).await;
            // Sentinels are many, and what is wrong with them names each.
            let is_theirs = matches!(
                error,
                StoreError::SentinelCredentials { .. } | StoreError::NoPrimary { .. }
            );
            let place = if is_theirs { None } else { reach::place(url, config).await };
            return Ok(vec![place.into_iter().fold(found, |found, place| found.at(&place))]);
        }
    };
    let (is_cluster, is_watched) = (speaks_to(url, "+cluster"), speaks_to(url, "+sentinel"));
    let way = Way { is_cluster, is_watched, is_tls: speaks_tls(url), expected };
    if !way.is_cluster {
        return Ok(of_server(&visit, &[0], &way).await);
    }
    let (cluster, mut found) = match Cluster::ask(&visit).await {
        Ok(cluster) => {
            let found = cluster.diagnoses();
            (cluster, found)
        }
        Err(error) => {
            // Which slots are its own has to be found out.
            let slots: Vec<_> = (0..16_384).step_by(256).collect();
            let mut found = of_server(&visit, &slots, &way).await;
            // Whoever cannot be asked at all has been found out by that.
            if found.len() > 1 {
                found.insert(0, cluster::unknown(&error, visit.address()));
            }
            return Ok(found);
        }
    };
    let mut primaries = cluster.primaries();
    let left_out = primaries.len().saturating_sub(MOST_SERVERS);
    primaries.truncate(MOST_SERVERS);
    for node in primaries {
        let address = node.address_beside(visit.address());
        match RedisVisit::open_node(url, config.clone(), &address).await {
            Ok(visit) => {
                let slot = node.first_slot().unwrap_or_default();
                found.extend(of_server(&visit, &[slot], &way).await);
            }
            Err(error) => found.push(reach::failed(&error, speaks_tls(url)).await.at(&address)),
        }
    }
    if left_out > 0 {
        let text = format!("{left_out} more servers were not looked at");
        found.push(Diagnosis::unknown("cluster", text, "name each by itself, without `+cluster`"));
    }
    Ok(found)
}

/// What is found at one server. A key in one of these slots is written and removed.
async fn of_server(visit: &RedisVisit, slots: &[u16], way: &Way<'_>) -> Vec<Diagnosis> {
    let Way { is_cluster, is_watched, is_tls, expected } = *way;
    let mut found = Vec::new();
    let info = match visit.ask(&["INFO"]).await {
        Ok(texts) => Info::new(texts.concat()),
        // Who may not ask this may still be let in; the store asks it as well.
        Err(error) => {
            found.push(reach::failed(&error, is_tls).await.at(visit.address()));
            return found;
        }
    };
    found.push(reach::reached(is_tls));
    found.push(server::version(&info));
    found.push(server::role(&info, is_cluster));
    if !info.is("loading", "1") {
        found.extend(timing::ask(visit, expected).await);
        if !info.is("role", "slave") {
            found.push(script::ask(visit, slots).await);
        }
        let asked = memory::Settings::ask(visit, &info).await;
        found.push(memory::eviction(&info, &asked));
        found.push(memory::used(&info, &asked));
        found.push(disk::ask(visit, &info).await);
        found.extend(idle::ask(visit).await);
        found.extend(cut_off::ask(visit, &info, is_watched).await);
        let (keys, marks) = keys::ask(visit, is_cluster).await;
        found.push(keys);
        found.extend(epoch::ask(visit, is_cluster, marks).await);
    }
    found.into_iter().map(|one| one.at(visit.address())).collect()
}

fn speaks_to(url: &str, whom: &str) -> bool {
    url.split("://").next().is_some_and(|scheme| scheme.ends_with(whom))
}

fn speaks_tls(url: &str) -> bool {
    url.starts_with("rediss") || url.starts_with("valkeys")
}

/// The variable that names the store.
pub(crate) const STORE: &str = "TOLLGATE_STORE";

const NO_STORE: &str = "no store is named: its reachability, version, role, round trip, clock, \
    scripts, eviction, memory, disk, idle connections, replicas, keys, epoch and Cluster would be looked at";

pub(crate) const NO_SCHEME: &str = "what was named is no address of a store: it has no scheme";

pub(crate) const NAME_ONE: &str =
    "name one: `--store redis://127.0.0.1:6379`, or the variable TOLLGATE_STORE; see `--help`";

/// A store that needs longer is of no use.
const PATIENCE: Duration = Duration::from_secs(2);

/// The primaries of a Cluster that are looked at.
const MOST_SERVERS: usize = 100;
