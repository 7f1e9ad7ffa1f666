//! What can be wrong with a Redis, each with a real one: the answer is a clear error in good time,
//! and afterwards no key has more than its limit.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

/// The same tests with servers of either kind.
macro_rules! with_either_kind {
    ($($test:ident),+ $(,)?) => {
        mod redis {
            $(#[tokio::test] async fn $test() { super::$test(crate::process::Kind::Redis).await; })+
        }
        mod valkey {
            $(#[tokio::test] async fn $test() { super::$test(crate::process::Kind::Valkey).await; })+
        }
    };
}

/// And with an old one as well, for what is told by its words.
macro_rules! with_every_kind {
    ($($test:ident),+ $(,)?) => {
        with_either_kind!($($test),+);
        mod former {
            $(#[tokio::test] async fn $test() { super::$test(crate::process::Kind::Former).await; })+
        }
    };
}

#[path = "../support/authority.rs"]
mod authority;
mod batches;
mod cluster;
mod fleet;
mod memory;
mod moving;
mod pings;
#[path = "../support/process.rs"]
mod process;
#[path = "../support/relay.rs"]
mod relay;
mod sentinel;
mod server;
mod shards;
mod state;
mod tls;
mod verdicts;
mod version;
mod view;
