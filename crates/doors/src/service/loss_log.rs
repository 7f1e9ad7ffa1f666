//! What the log says about a store that has lost its memory.

use std::time::{Duration, UNIX_EPOCH};

use tokio::sync::watch;
use tollgate::Engine;
use tollgate::store::{Extent, Loss, Losses};

/// Says it once for each loss. Without it, all that is seen of one are requests that are denied.
#[derive(Debug)]
pub(super) struct LossLog(Option<watch::Receiver<Losses>>);

impl LossLog {
    pub(super) fn of(engine: &Engine) -> Self {
        let mut losses = engine.losses();
        // What was found out before anybody listened is news as well.
        losses.iter_mut().for_each(watch::Receiver::mark_changed);
        Self(losses)
    }

    /// Waits for the next loss, and writes it down.
    pub(super) async fn tell(&mut self) {
        let Some(losses) = &mut self.0 else { return std::future::pending().await };
        match losses.changed().await {
            Ok(()) => losses.borrow_and_update().latest.iter().for_each(tell),
            Err(_) => self.0 = None,
        }
    }
}

fn tell(loss: &Loss) {
    let Loss { at, extent, server, process, .. } = loss;
    let at = UNIX_EPOCH + Duration::from_nanos(at.as_unix_nanos());
    let at = httpdate::fmt_http_date(at);
    match extent {
        Extent::Everything => tracing::warn!(
            server,
            process,
            at,
            "the store has lost its memory: keys of shared limits count as used up until what may have been \
             spent is back, windows until they end; {HELP}"
        ),
        _ => tracing::warn!(
            server,
            process,
            at,
            "the store was started again, or another server has taken over, and may lack the last moments: \
             keys of shared limits count as used up until what may have been spent is back, but for windows \
             of more than a minute; {HELP}"
        ),
    }
}

const HELP: &str =
    "`tollgate keys reset` gives a key a new start, see docs/sharing.md#after-the-memory-was-lost";
