//! `tollgate serve`, with the real clients and proxies that ask it.

mod life;
mod support;
