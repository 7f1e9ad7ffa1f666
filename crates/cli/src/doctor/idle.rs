//! Whether connections of nodes stay open when nobody asks.

use tollgate_store::RedisVisit;

use super::diagnosis::Diagnosis;
use super::memory::config;

/// Nothing if that is not told: it matters too little for a word about what is not known.
pub(super) async fn ask(visit: &RedisVisit) -> Option<Diagnosis> {
    let seconds = config(visit, "timeout").await.ok().flatten()?;
    Some(diagnosis(seconds.parse().ok()?))
}

fn diagnosis(seconds: u64) -> Diagnosis {
    const CODE: &str = "idle";
    match seconds {
        0 => Diagnosis::ok(CODE, "connections that nobody uses stay open"),
        _ => Diagnosis::warning(
            CODE,
            format!(
                "it closes connections that nobody has used for {seconds} seconds (`timeout`): a node \
                 that is asked after so long connects anew, and what it is asked then may be left to \
                 the rule's policy"
            ),
            "CONFIG SET timeout 0, and in its file; connections whose other end is gone are closed by \
             `tcp-keepalive`",
        ),
    }
}
