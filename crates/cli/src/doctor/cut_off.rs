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
        (Ok(needed), Ok(lag)) => diagnosis(needed, lag),
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
fn diagnosis(needed: u64, lag: u64) -> Diagnosis {
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
    Diagnosis::ok(
        CODE,
        format!("it takes no writes {lag} s after fewer than {needed} of its replicas follow it"),
    )
}

const CODE: &str = "cut-off";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Grade;

    #[test]
    fn a_primary_that_needs_nobody_may_be_one_of_two() {
        for (needed, lag, grade) in
            [(0, 10, Grade::Warning), (1, 0, Grade::Warning), (1, 10, Grade::Ok)]
        {
            let found = diagnosis(needed, lag);
            assert_eq!(found.grade, grade, "{needed} {lag}: {found:?}");
            assert_eq!(found.remedy.contains("on_store_failure"), grade == Grade::Warning);
        }
    }
}
