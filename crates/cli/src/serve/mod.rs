//! `tollgate serve` and `tollgate init`.

mod banner;
mod example;
mod identity;
mod logging;
mod notify;
mod open_files;
#[cfg(feature = "otel")]
mod otel;
#[cfg(not(feature = "otel"))]
#[path = "no_otel.rs"]
mod otel;
mod reload;
mod settings;
mod store;

use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tollgate_doors::{Doors, Service, Watched};
use tollgate_rules::{NoFiles, RuleSet, Source};

use crate::error::{Ending, Error};
use crate::files;
use crate::flags::{Init, Serve};
use crate::print;
use crate::serve::identity::Shown;
use crate::serve::notify::Notifier;
use crate::serve::otel::Telemetry;
use crate::serve::reload::Reload;

/// Serves until it is told to end.
pub(crate) fn run(flags: &Serve) -> Result<Ending, Error> {
    let config = settings::resolve(flags)?;
    let level = logging::start(&config.log)?;
    open_files::take_all(&config);
    let mut watched = config.rules.as_ref().map(Watched::new);
    let rules = match &mut watched {
        Some(watched) => watched.load().map_err(|error| Error::Load { error })?,
        None => starter()?,
    };
    let telemetry = Telemetry::new()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::System)?.block_on(async {
        let (service, mut shown) = store::serving(rules, &config).await?;
        let mut service = service.logging(&config.log, level);
        if let Some(telemetry) = &telemetry {
            service = telemetry.observe(service);
        }
        let service = Arc::new(service);
        // Whoever reads that it serves may tell it to end.
        let [mut terminate, mut interrupt, mut hangup] = signals().map_err(Error::System)?;
        let doors = Doors::open(Arc::clone(&service), &config)?;
        banner::print(&doors, &config, &service)?;
        let notifier = Notifier::new();
        notifier.ready(&service);
        let mut reload = Reload::new(&service, watched, &notifier);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = reload.run(&mut hangup) => {}
            () = notifier.watch(&doors, &service) => {}
            () = report(telemetry.as_ref(), &service) => {}
            () = service.watch_store() => {}
            () = follow(shown.as_mut(), &service) => {}
            () = service.ending() => {}
        }
        tracing::info!("ending: answering whoever has asked");
        notifier.stopping(config.drain.delay + config.drain.timeout);
        doors.drain().await;
        if let Some(telemetry) = &telemetry {
            telemetry.end(&service).await;
        }
        Ok(Ending::Good)
    })
}

/// Shows the store the certificate that the files have. Does not end.
async fn follow(shown: Option<&mut Shown>, service: &Service) {
    match shown {
        Some(shown) => shown.follow(service).await,
        None => std::future::pending().await,
    }
}

/// Sends telemetry to whoever collects it. Does not end.
async fn report(telemetry: Option<&Telemetry>, service: &Service) {
    match telemetry {
        Some(telemetry) => telemetry.run(service).await,
        None => std::future::pending().await,
    }
}

/// Writes a rule file to start from.
pub(crate) fn init(flags: &Init) -> Result<Ending, Error> {
    files::create(&flags.file, STARTER, flags.force)?;
    let file = &flags.file;
    print::text(&format!(
        "{file} is written.\n\
         What it means:  tollgate rules check {file}\n\
         Serve it:       tollgate serve --rules {file}\n"
    ))?;
    Ok(Ending::Good)
}

/// The rules of whoever has none.
fn starter() -> Result<(Source, RuleSet), Error> {
    let source = Source::new("the rules of `tollgate init`", STARTER);
    match RuleSet::read(&source, &NoFiles) {
        Ok(rules) => Ok((source, rules)),
        Err(report) => Err(Error::Rules { text: Box::new(source), report }),
    }
}

/// What the system tells us: to end, to end, and to look again.
fn signals() -> std::io::Result<[Signal; 3]> {
    Ok([
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
        signal(SignalKind::hangup())?,
    ])
}

const STARTER: &str = include_str!("starter.yaml");
