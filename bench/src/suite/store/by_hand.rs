//! What somebody would write who needs one limit in Redis and no more: a script for each request.

use redis::aio::MultiplexedConnection;
use redis::{Client, Script};

use super::asking::{Asking, key};
use crate::error::BenchError;

/// Calls the script for every request, by its hash.
#[derive(Clone)]
pub(super) struct ByHand {
    connection: MultiplexedConnection,
    hash: String,
}

impl ByHand {
    pub(super) async fn open(url: &str) -> Result<Self, BenchError> {
        let mut connection = connect(url).await?;
        let hash = Script::new(SCRIPT).get_hash().to_owned();
        redis::cmd("SCRIPT").arg("LOAD").arg(SCRIPT).exec_async(&mut connection).await?;
        Ok(Self { connection, hash })
    }
}

impl Asking for ByHand {
    async fn ask(&self, number: u64) -> Result<bool, BenchError> {
        let mut call = redis::cmd("EVALSHA");
        call.arg(&self.hash).arg(1).arg(key(number)).arg(INTERVAL).arg(BURST).arg(1);
        let mut connection = self.connection.clone();
        let (allowed, _, _): (i64, i64, i64) = call.query_async(&mut connection).await?;
        Ok(allowed == 1)
    }
}

/// Asks for nothing, over the same library: the least that a round trip takes.
#[derive(Clone)]
pub(super) struct Ping(MultiplexedConnection);

impl Ping {
    pub(super) async fn open(url: &str) -> Result<Self, BenchError> {
        Ok(Self(connect(url).await?))
    }
}

impl Asking for Ping {
    async fn ask(&self, _: u64) -> Result<bool, BenchError> {
        redis::cmd("PING").exec_async(&mut self.0.clone()).await?;
        Ok(true)
    }
}

pub(super) async fn connect(url: &str) -> Result<MultiplexedConnection, BenchError> {
    Ok(Client::open(url)?.get_multiplexed_async_connection().await?)
}

/// A thousand in a second: microseconds for one, and how many at once.
const INTERVAL: u64 = 1_000;
const BURST: u64 = 1_000;

/// A token bucket as the moment at which it is full again, by the server's clock.
const SCRIPT: &str = "
local interval, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now)
local after = full + cost * interval
local room = now + burst * interval - after
if room < 0 then
    return { 0, math.floor((now + burst * interval - full) / interval), -room }
end
redis.call('SET', KEYS[1], string.format('%d', after), 'PX', math.ceil((after - now) / 1000))
return { 1, math.floor(room / interval), 0 }
";
