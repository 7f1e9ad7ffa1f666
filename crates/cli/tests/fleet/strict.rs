//! A limit that the store decides about alone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::redis::Redis;
use crate::{Fleet, check};

#[test]
fn eight_clients_at_once_get_exactly_the_limit() {
    let redis = Redis::start(&[]);
    let rules = "rules: [{ name: s, key: [user], limit: 500/day, consistency: strict }]";
    let fleet = Fleet::patient("1", 3, &redis.url(), rules);
    let addresses = fleet.addresses("http");
    let allowed = AtomicUsize::new(0);
    thread::scope(|scope| {
        for client in 0..8 {
            let (address, allowed) = (addresses[client % 3], &allowed);
            scope.spawn(move || {
                for _ in 0..100 {
                    let status = check(address, r#"{"path":"/","user":"alice"}"#);
                    assert!([200, 429].contains(&status), "{status}");
                    allowed.fetch_add(usize::from(status == 200), Ordering::Relaxed);
                }
            });
        }
    });
    // Another one comes back every 172.8 seconds.
    assert_eq!(allowed.into_inner(), 500);
    let asked = "tollgate_store_decisions_total{how=\"asked\"}";
    assert_eq!((0..3).map(|node| fleet.metric(node, asked)).sum::<f64>(), 800.0);
}
