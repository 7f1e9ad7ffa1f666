//! Rules that change while they are served.

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::Signal;
use tollgate::Timer as _;
use tollgate_doors::{Service, Watched};

/// Puts the rules of a file in force when it changes.
pub(super) struct Reload {
    service: Arc<Service>,
    watched: Option<Watched>,
}

impl Reload {
    pub(super) fn new(service: &Arc<Service>, watched: Option<Watched>) -> Self {
        Self { service: Arc::clone(service), watched }
    }

    /// Looks now and then, and when it is told to. Does not end.
    pub(super) async fn run(&mut self, hangup: &mut Signal) {
        loop {
            let told = tokio::select! {
                _ = hangup.recv() => true,
                () = self.service.clock().sleep(INTERVAL) => false,
            };
            let Some(watched) = &mut self.watched else { continue };
            if told || watched.has_changed() {
                load(&self.service, watched);
            }
        }
    }
}

/// Puts the rules of the file in force, unless something is wrong with them.
fn load(service: &Service, watched: &mut Watched) {
    let file = watched.path().display().to_string();
    match watched.load() {
        Ok((source, rules)) => {
            let (version, count) = (rules.version(), rules.rules().len());
            match service.swap((source, rules)) {
                Ok(()) => tracing::info!(file, %version, rules = count, "rules are in force"),
                Err(error) => service.refuse_rules(&file, &error.to_string()),
            }
        }
        Err(error) => service.refuse_rules(&file, &error.to_text()),
    }
}

/// How often a file is looked at. Whoever changes it sees that within a second.
const INTERVAL: Duration = Duration::from_millis(250);
