//! `tollgate serve`, with the real clients and proxies that ask it.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

mod admin;
mod caddy;
mod clients;
mod denials;
mod envoy;
mod envoy_rlqs;
mod envoy_rls;
mod grpc;
mod haproxy;
mod http;
mod keys;
mod kill;
mod life;
mod metrics;
mod nginx;
mod notify;
#[cfg(feature = "otel")]
mod otel;
mod prometheus;
mod push;
#[path = "../../../store/tests/support/process.rs"]
mod redis;
mod resp;
mod support;
mod tls;
mod traefik;
