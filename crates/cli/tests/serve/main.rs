//! `tollgate serve`, with the real clients and proxies that ask it.

mod caddy;
mod clients;
mod envoy;
mod haproxy;
mod life;
mod nginx;
mod support;
mod traefik;
