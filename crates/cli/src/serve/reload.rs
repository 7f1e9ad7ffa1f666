//! Rules that change while they are served.

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::Signal;
use tollgate::Timer as _;
use tollgate_doors::{Service, Watched};

use crate::serve::notify::Notifier;

/// Puts the rules of a file in force when it changes.
pub(super) struct Reload<'a> {
    service: Arc<Service>,
    watched: Option<Watched>,
    notifier: &'a Notifier,
}

impl<'a> Reload<'a> {
    pub(super) fn new(
        service: &Arc<Service>,
        watched: Option<Watched>,
        notifier: &'a Notifier,
    ) -> Self {
        Self { service: Arc::clone(service), watched, notifier }
    }

    /// Looks now and then, and when it is told to. Does not end.
    pub(super) async fn run(&mut self, hangup: &mut Signal) {
        loop {
            let told = tokio::select! {
                _ = hangup.recv() => true,
                () = self.service.clock().sleep(INTERVAL) => false,
            };
            if told {
                self.notifier.reloading();
            }
            if let Some(watched) = &mut self.watched
                && (told || watched.has_changed())
            {
                load(&self.service, watched);
                self.notifier.changed(&self.service);
            }
            if told {
                // With the old rules, if something is wrong with the new ones.
                self.notifier.ready(&self.service);
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
