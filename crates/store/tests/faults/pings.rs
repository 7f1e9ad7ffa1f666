//! A store that is left alone: nothing is sent but pings, and they find it again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tollgate_store::{RedisConfig, Store as _};

use crate::process::{Kind, Redis, start_cluster};
use crate::shards::let_nobody_take_over;
use crate::view::{View, pause, until_linked};

impl View {
    /// With as much patience as a node has, or somewhat more.
    fn of_a_node(url: &str) -> Self {
        let timeout = Duration::from_millis(200);
        Self::with(url, RedisConfig { timeout, ..RedisConfig::default() })
    }

    /// Sends pings until they are answered, or until they are not.
    async fn ping_until(&self, is_answered: bool) {
        for _ in 0..600 {
            if self.store.ping().await.is_ok() == is_answered {
                return;
            }
            pause().await;
        }
        panic!("in vain")
    }
}

#[tokio::test]
async fn pings_alone_find_a_server_that_was_killed_and_started_again() {
    let mut redis = Redis::start(&[]);
    let view = View::of_a_node(&redis.url());
    view.ping_until(true).await;
    redis.kill();
    view.ping_until(false).await;
    redis.restart_empty();
    view.ping_until(true).await;
}

#[tokio::test]
async fn pings_alone_find_a_server_that_stood_still_and_was_killed() {
    let mut redis = Redis::start(&[]);
    let view = View::of_a_node(&redis.url());
    let budget = view.bucket("20/day");
    assert_eq!(view.left_at_last(&budget, "k").await, 20);
    redis.signal("STOP");
    // Fewer late answers than it takes to try another connection.
    assert!(view.left(&budget, "k").await.is_err());
    assert!(view.store.ping().await.is_err());
    redis.restart_empty();
    view.ping_until(true).await;
}

/// A machine that is gone ends no connection: nothing comes back on it, ever.
#[tokio::test]
async fn pings_alone_leave_a_connection_on_which_nothing_comes_back() {
    let redis = Redis::start(&[]);
    let is_mute = Arc::new(AtomicBool::new(false));
    let port = forward(redis.port, Arc::clone(&is_mute)).await;
    let view = View::of_a_node(&format!("redis://127.0.0.1:{port}"));
    view.ping_until(true).await;
    is_mute.store(true, Ordering::Relaxed);
    view.ping_until(false).await;
    view.ping_until(true).await;
}

#[tokio::test]
async fn pings_alone_find_another_server_of_a_cluster() {
    let mut servers = start_cluster(Kind::Redis);
    // Or else it would be found out from the slots that it is gone.
    let_nobody_take_over(&servers);
    let view = View::of_a_node(&format!("redis+cluster://127.0.0.1:{}", servers[1].port));
    view.ping_until(true).await;
    // From then on it is always the same that is asked.
    for primary in &servers[..3] {
        until_linked(primary, 1).await;
    }
    let before: Vec<_> = servers.iter().map(pings).collect();
    assert!(view.store.ping().await.is_ok());
    let has_answered = |place: &usize| pings(&servers[*place]) > before[*place];
    let asked = (0..servers.len()).find(has_answered).expect("somebody has answered");
    servers[asked].kill();
    view.ping_until(true).await;
}

/// How often somebody has asked a server for the time.
fn pings(server: &Redis) -> u32 {
    let stats = server.cli(&["INFO", "commandstats"]);
    let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_time:calls="));
    calls.and_then(|calls| calls.split(',').next()?.parse().ok()).unwrap_or(0)
}

/// Listens for connections to a server. The first one falls silent when it is told to, and others do not.
async fn forward(to: u16, is_mute: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut may_fall_silent = true;
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
            tokio::spawn(carry(near, far, Arc::clone(&is_mute), may_fall_silent));
            may_fall_silent = false;
        }
    });
    port
}

async fn carry(near: TcpStream, far: TcpStream, is_mute: Arc<AtomicBool>, may_fall_silent: bool) {
    let mut buffers = ([0; 4_096], [0; 4_096]);
    loop {
        let (from_near, from_far) = (near.readable(), far.readable());
        let (from, to, buffer) = tokio::select! {
            _ = from_near => (&near, &far, &mut buffers.0[..]),
            _ = from_far => (&far, &near, &mut buffers.1[..]),
        };
        let count = match from.try_read(buffer) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => return,
        };
        let mut rest = &buffer[..count];
        while !(rest.is_empty() || may_fall_silent && is_mute.load(Ordering::Relaxed)) {
            if to.writable().await.is_err() {
                return;
            }
            let sent = to.try_write(rest).unwrap_or(0);
            rest = &rest[sent..];
        }
    }
}

/// Redis and whatever stands before it close connections on which nobody has asked for a while. The question
/// after that is answered all the same, also if it may not be sent twice.
#[tokio::test]
async fn who_asks_after_a_connection_was_closed_is_answered() {
    let redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    let budget = view.bucket("20/day");
    assert_eq!(view.left_at_last(&budget, "k").await, 20);
    for _ in 0..5 {
        let killed = redis.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
        assert_eq!(killed.trim(), "1", "the connection of the view");
        pause().await;
        let once = view.ask(&budget, "k", tollgate_core::lease::Exchange::once(1)).await;
        assert!(once.is_ok_and(|grant| grant.decision.is_allowed()));
    }
    assert_eq!(view.left(&budget, "k").await, Ok(15));
}
