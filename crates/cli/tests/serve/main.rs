//! `tollgate serve`, with the real clients and proxies that ask it.

mod admin;
mod caddy;
mod clients;
mod denials;
mod envoy;
mod haproxy;
mod http;
mod keys;
mod kill;
mod life;
mod metrics;
mod nginx;
mod push;
mod resp;
mod support;
mod traefik;
