//! `tollgate serve`, with the real clients and proxies that ask it.

mod caddy;
mod clients;
mod envoy;
mod haproxy;
mod http;
mod life;
mod nginx;
mod resp;
mod support;
mod traefik;
