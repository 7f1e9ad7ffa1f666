//! All doors, open.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, UnixListener};
use tollgate::{Clock as _, Timer as _};

use crate::address::Address;
use crate::admin::Admin;
use crate::config::Config;
use crate::connection::{Accepted, Meter, Peer, Stream};
use crate::door::{Door, Place, Places};
use crate::drain::{Draining, Ended, Phase, UnderWay};
use crate::forward_auth::ForwardAuth;
use crate::grpc::Grpc;
use crate::http::Http;
use crate::resp::Resp;
use crate::respond::Answers;
use crate::service::Service;
use crate::status::Status;
use crate::tickets::Tickets;
use crate::tls::{Following, Tls, TlsError};
use crate::web::Web;
use crate::worker::Workers;

/// All doors, open until they are [drained](Self::drain).
#[derive(Debug)]
pub struct Doors {
    service: Arc<Service>,
    workers: Arc<Workers>,
    started: Vec<Started>,
    accepting: Vec<tokio::task::JoinHandle<()>>,
    tls: Option<Arc<Tls>>,
    under_way: UnderWay,
    ended: Ended,
    delay: Duration,
    timeout: Duration,
}

/// A door that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// What it is called.
    pub name: &'static str,
    /// Where it listens.
    pub address: Address,
    /// Whether it speaks TLS.
    pub tls: bool,
}

/// A door cannot be opened. None is.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("{door} cannot listen on {address}: {error}")]
    Listen {
        /// Which door.
        door: &'static str,
        /// Where.
        address: Address,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// There are no threads.
    #[error("no worker can be started: {0}")]
    Workers(#[source] io::Error),
    /// The files for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Doors {
    /// Opens all doors that are not off. Connections are accepted as long as the runtime runs that
    /// this is called in; they are served by threads of their own.
    pub fn open(service: Arc<Service>, config: &Config) -> Result<Self, StartError> {
        let tls = config.tls.as_ref().map(Tls::new).transpose()?.map(Arc::new);
        let workers = Workers::start(config.threads).map_err(StartError::Workers)?;
        let (under_way, ended) = UnderWay::new();
        let mut doors = Self {
            service: Arc::clone(&service),
            workers: Arc::new(workers),
            started: Vec::new(),
            accepting: Vec::new(),
            tls,
            under_way,
            ended,
            delay: config.drain.delay,
            timeout: config.drain.timeout,
        };
        let limits = config.limits;
        service.held().allow(limits.held_bytes);
        let answers = Arc::new(Answers::new(Arc::clone(&service), config.respond));
        let tickets = Arc::new(Tickets::new(&limits));
        service.metrics().follow(&tickets);
        let swept = sweep(Arc::clone(&service), Arc::clone(&tickets));
        doors.accepting.push(tokio::spawn(swept));
        if let Some(tls) = &doors.tls {
            service.metrics().follow_tls(tls);
            doors.accepting.push(tokio::spawn(follow(Arc::clone(&service), Following::new(tls))));
        }
        let held = Arc::clone(&tickets);
        let http = Http::new(Arc::clone(&service), Arc::clone(&answers), held, limits);
        let forward_auth = ForwardAuth::new(Arc::clone(&service), Arc::clone(&answers));
        let held = Arc::clone(&tickets);
        let grpc = Grpc::new(Arc::clone(&service), answers, held, limits);
        let admin =
            Web::new(Admin::new(Arc::clone(&service), config.admin_token.clone(), limits), limits);
        let password = config.resp_password.clone();
        let resp = Resp::new(Arc::clone(&service), tickets, password, limits);
        doors.add(Web::new(http, limits), config.http.as_ref(), config)?;
        doors.add(Web::new(forward_auth, limits), config.forward_auth.as_ref(), config)?;
        doors.add(resp, config.resp.as_ref(), config)?;
        doors.add(Web::new(grpc, limits), config.grpc.as_ref(), config)?;
        doors.add(Web::new(Status::new(service), limits), config.status.as_ref(), config)?;
        doors.add(admin, config.admin.as_ref(), config)?;
        doors.service.tell_unheard();
        Ok(doors)
    }

    /// The doors that are open.
    pub fn started(&self) -> &[Started] {
        &self.started
    }

    /// Ends once every worker has done something that it was given now. If one hangs, it does not
    /// end: whoever watches this process may end that.
    pub async fn answer(&self) {
        self.workers.answer().await;
    }

    fn add(
        &mut self,
        door: impl Door,
        address: Option<&Address>,
        config: &Config,
    ) -> Result<(), StartError> {
        let Some(address) = address else { return Ok(()) };
        let name = door.name().as_str();
        let failed = |error| StartError::Listen { door: name, address: address.clone(), error };
        let (listener, address) = Listener::bind(address).map_err(failed)?;
        let tls = match &address {
            Address::Tcp(_) => self.tls.clone().filter(|tls| tls.is_for(door.name())),
            Address::Unix(_) => None,
        };
        self.started.push(Started { name, address, tls: tls.is_some() });
        let places = Arc::new(Places::new(&config.limits));
        self.service.metrics().opened(door.name(), &places);
        let accepting = Accepting {
            listener,
            door: Arc::new(door),
            service: Arc::clone(&self.service),
            workers: Arc::clone(&self.workers),
            tls,
            patience: config.limits.patience,
            places,
            under_way: self.under_way.clone(),
        };
        self.accepting.push(tokio::spawn(accepting.run(self.service.drain().listener())));
        Ok(())
    }

    /// Ends: first not ready any more, then, after the delay, without new connections, and with an
    /// answer for whoever has asked. Whoever takes longer than the timeout is cut off: the number of
    /// seconds that was waited is not more than both.
    pub async fn drain(self) {
        let clock = self.service.engine().clock();
        self.service.drain().enter(Phase::Leaving);
        clock.sleep(self.delay).await;
        self.service.drain().enter(Phase::Draining);
        for accepting in self.accepting {
            // It ends by itself, and closes its listener.
            let _ = accepting.await;
        }
        drop(self.under_way);
        // Whoever is still there is not waited for any longer.
        if tokio::time::timeout(self.timeout, self.ended.wait()).await.is_err() {
            tracing::warn!("some connections did not end in time, and are cut off");
        }
        for Started { address, .. } in &self.started {
            if let Address::Unix(path) = address {
                // If it is gone already, so much the better.
                let _ = fs::remove_file(path);
            }
        }
        if let Ok(workers) = Arc::try_unwrap(self.workers) {
            workers.stop();
        }
    }
}

/// Throws away what nobody needs any more, also when nobody asks: tickets whose time is over, whose
/// slots other doors wait for, and rules that no request under way holds. Ends with the server.
async fn sweep(service: Arc<Service>, tickets: Arc<Tickets>) {
    let mut draining = service.drain().listener();
    loop {
        tokio::select! {
            () = service.clock().sleep(SWEEP) => {}
            () = draining.begin() => return,
        }
        for _ in 0..SWEEPS {
            tickets.sweep(service.clock().now());
        }
        service.engine().release_retired();
    }
}

/// Reads certificates again when their files change. Ends with the server.
async fn follow(service: Arc<Service>, mut following: Following) {
    let mut draining = service.drain().listener();
    loop {
        tokio::select! {
            () = service.clock().sleep(SWEEP) => following.look(),
            () = draining.begin() => return,
        }
    }
}

/// Begins a connection. A client that takes too long over TLS, or shows nothing that is believed, is
/// not told more than TLS does: it has said nothing yet that could be answered.
async fn join(
    accepted: Accepted,
    meter: Meter,
    tls: Option<Arc<Tls>>,
    patience: Duration,
) -> Option<(Stream, Option<Arc<str>>)> {
    let joined = match &tls {
        None => accepted.join(meter, None).await,
        Some(tls) => {
            let joined = tokio::time::timeout(patience, accepted.join(meter, Some(tls))).await;
            let joined = joined.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            joined.inspect_err(|_| tls.fail())
        }
    };
    joined.inspect_err(|error| tracing::debug!(%error, "a connection did not begin")).ok()
}

/// A door with its listener.
struct Accepting<D> {
    listener: Listener,
    door: Arc<D>,
    service: Arc<Service>,
    workers: Arc<Workers>,
    tls: Option<Arc<Tls>>,
    /// How long a client may take to begin.
    patience: Duration,
    places: Arc<Places>,
    under_way: UnderWay,
}

impl<D: Door> Accepting<D> {
    async fn run(self, mut draining: Draining) {
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = draining.begin() => return,
            };
            match accepted {
                Ok((accepted, peer)) => self.hand_over(accepted, peer, &draining).await,
                Err(error) => {
                    // Mostly there are too many open files: that passes when others close theirs.
                    let door = self.door.name().as_str();
                    tracing::warn!(door, %error, "a connection cannot be accepted");
                    self.service.engine().clock().sleep(PAUSE).await;
                }
            }
        }
    }

    async fn hand_over(&self, accepted: Accepted, peer: Option<IpAddr>, draining: &Draining) {
        let (door, draining) = (Arc::clone(&self.door), draining.clone());
        let (place, under_way) = (self.places.take(), self.under_way.clone());
        let meter = Meter::new(Arc::clone(&self.service), door.name());
        let (tls, patience) = (self.tls.clone(), self.patience);
        self.workers
            .give(Box::pin(async move {
                // To agree on TLS is work, which those are not owed for whom there is no place.
                if tls.is_some() && place.is_none() {
                    return;
                }
                let joined = join(accepted, meter, tls, patience).await;
                // If the runtime does not take it, or TLS cannot be agreed on, it is closed.
                let Some((stream, name)) = joined else { return };
                let peer = Peer { ip: peer, name };
                match &place {
                    Some(Place { .. }) => door.serve(stream, peer, draining).await,
                    None => door.refuse(stream).await,
                }
                drop((place, under_way));
            }))
            .await;
    }
}

/// Where connections come from.
#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Listens, and says where: the port may have been any that is free.
    fn bind(address: &Address) -> io::Result<(Self, Address)> {
        match address {
            Address::Tcp(address) => {
                let domain = socket2::Domain::for_address(*address);
                let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
                // A restart must not wait for the connections of the process before it.
                socket.set_reuse_address(true)?;
                socket.set_nonblocking(true)?;
                socket.bind(&(*address).into())?;
                socket.listen(BACKLOG)?;
                let listener = TcpListener::from_std(socket.into())?;
                let address = Address::Tcp(listener.local_addr()?);
                Ok((Self::Tcp(listener), address))
            }
            Address::Unix(path) => {
                remove_stale(path)?;
                Ok((Self::Unix(UnixListener::bind(path)?), Address::Unix(path.clone())))
            }
        }
    }

    async fn accept(&self) -> io::Result<(Accepted, Option<IpAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                stream.set_nodelay(true)?;
                // Whoever has gone without a word is noticed after some minutes.
                let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
                SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
                Ok((Accepted::Tcp(stream.into_std()?), Some(peer.ip().to_canonical())))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Accepted::Unix(stream.into_std()?), None))
            }
        }
    }
}

/// Removes the socket of a process that did not end well. One that somebody listens on stays, and
/// so does whatever is no socket.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|known| known.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// After this a silent connection is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// How often what is over is thrown away, and how many times a few of it.
const SWEEP: Duration = Duration::from_millis(500);
const SWEEPS: usize = 64;

/// After an error, before the next try.
const PAUSE: Duration = Duration::from_millis(100);
