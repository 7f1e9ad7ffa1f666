//! Tells whoever started the server how it is doing: systemd, by the protocol of `sd_notify`.
//!
//! That is one datagram for each thing to say, to a socket that the environment names. It is
//! written out here rather than taken from a crate because those read the environment themselves,
//! which only [`environment`](crate::environment) does.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tollgate::Timer as _;
use tollgate_doors::{Doors, Service};

use crate::environment;

/// Tells whoever started us how we are doing, if that is anybody who listens.
#[derive(Debug)]
pub(super) struct Notifier {
    to: Option<(UnixDatagram, SocketAddr)>,
    /// How often we have to say that we are alive.
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Speaks to whoever the environment names.
    pub(super) fn new() -> Self {
        Self::within(environment::variable, std::process::id())
    }

    fn within(environment: impl Fn(&str) -> Option<OsString>, us: u32) -> Self {
        let to = environment("NOTIFY_SOCKET").and_then(|name| match connect(&name) {
            Ok(to) => Some(to),
            Err(error) => {
                tracing::warn!(%error, "NOTIFY_SOCKET cannot be used: nobody is told how we are");
                None
            }
        });
        let number = |name| environment(name)?.to_str()?.parse::<u64>().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(us));
        // Twice as often as it is expected, as systemd recommends.
        let watchdog = number("WATCHDOG_USEC").filter(|micros| *micros > 0 && is_ours);
        Self { to, watchdog: watchdog.map(|micros| Duration::from_micros(micros / 2)) }
    }

    /// All doors are open, and these rules in force.
    pub(super) fn ready(&self, service: &Service) {
        self.say(&format!("READY=1\nSTATUS={}", status(service)));
    }

    /// Rules are read again, until [`ready`](Self::ready) is said.
    pub(super) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={micros}\nSTATUS=reading the rules again"));
    }

    /// Other rules are in force.
    pub(super) fn changed(&self, service: &Service) {
        self.say(&format!("STATUS={}", status(service)));
    }

    /// It ends, and may take so long.
    pub(super) fn stopping(&self, longest: Duration) {
        // A drain that was configured to be long must not be cut short by the time that the unit
        // gives everybody.
        let micros = (longest + BESIDE).as_micros();
        self.say(&format!(
            "STOPPING=1\nEXTEND_TIMEOUT_USEC={micros}\nSTATUS=answering whoever has asked"
        ));
    }

    /// Says again and again that we are alive, as long as every worker does what it is given.
    /// Does not end.
    pub(super) async fn watch(&self, doors: &Doors, service: &Service) {
        let (Some(interval), Some(_)) = (self.watchdog, &self.to) else {
            return std::future::pending().await;
        };
        loop {
            doors.answer().await;
            self.say("WATCHDOG=1");
            service.clock().sleep(interval).await;
        }
    }

    fn say(&self, message: &str) {
        let Some((socket, to)) = &self.to else { return };
        if let Err(error) = socket.send_to_addr(message.as_bytes(), to) {
            let what = message.split('=').next().unwrap_or_default();
            tracing::warn!(%error, what, "whoever started us cannot be told how we are");
        }
    }
}

fn status(service: &Service) -> String {
    let rules = service.rules();
    format!("serving {} rules, version {}", rules.rules().len(), rules.version())
}

fn connect(name: &OsString) -> io::Result<(UnixDatagram, SocketAddr)> {
    let to = match name.as_bytes() {
        // What begins so is not in the file system.
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(name)?,
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no path")),
    };
    let socket = UnixDatagram::unbound()?;
    // If nobody reads what we say, we go on.
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok((socket, to))
}

/// What ending takes beside waiting.
const BESIDE: Duration = Duration::from_secs(10);

const PATIENCE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    fn watchdog(variables: &[(&str, &str)]) -> Option<Duration> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Notifier::within(|name| find(name).map(|(_, value)| (*value).into()), 7).watchdog
    }

    #[test]
    fn says_that_it_is_alive_twice_as_often_as_expected() {
        assert_eq!(watchdog(&[("WATCHDOG_USEC", "3000000")]), Some(Duration::from_millis(1_500)));
        assert_eq!(
            watchdog(&[("WATCHDOG_USEC", "10"), ("WATCHDOG_PID", "7")]),
            Some(Duration::from_micros(5))
        );
    }

    #[test]
    fn a_watchdog_of_another_process_is_none_of_ours() {
        assert_eq!(watchdog(&[("WATCHDOG_USEC", "3000000"), ("WATCHDOG_PID", "8")]), None);
        for bad in ["", "0", "-1", "soon"] {
            assert_eq!(watchdog(&[("WATCHDOG_USEC", bad)]), None, "{bad}");
        }
        assert_eq!(watchdog(&[]), None);
    }

    #[test]
    fn speaks_to_a_socket_without_a_file() {
        let name = format!("tollgate-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let hears = UnixDatagram::bind_addr(&address).unwrap();
        let named = |asked: &str| (asked == "NOTIFY_SOCKET").then(|| format!("@{name}").into());
        Notifier::within(named, 7).reloading();
        let mut message = [0; 200];
        let length = hears.recv(&mut message).unwrap();
        let message = String::from_utf8_lossy(&message[..length]);
        let micros = message.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
        assert!(message.starts_with("RELOADING=1\n"), "{message}");
        assert!(micros.unwrap().parse::<u64>().unwrap() > 0, "{message}");
    }

    #[test]
    fn a_socket_that_is_none_stops_nobody() {
        for name in ["", "vsock:2:1234", "not/absolute", "/nowhere/to/be/found"] {
            let named = |asked: &str| (asked == "NOTIFY_SOCKET").then(|| name.into());
            Notifier::within(named, 7).reloading();
        }
    }
}
