//! Makes Rust of the files in `proto`. No compiler of protocol buffers has to be installed.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::{env, error, fs};

use prost::Message as _;

#[expect(clippy::disallowed_methods, reason = "cargo says in a variable where to write")]
fn main() -> Result<(), Box<dyn error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let all = protox::compile(ROOTS, ["proto"])?;
    let folder = PathBuf::from(env::var("OUT_DIR")?);
    // For reflection. What makes the code would forget the comments and the services' order.
    fs::write(folder.join("descriptors.bin"), all.encode_to_vec())?;
    tonic_prost_build::configure()
        // Who connects chooses how.
        .build_transport(false)
        .btree_map(".")
        .bytes(".envoy.service.ratelimit.v3.RateLimitResponse.raw_body")
        .compile_fds(all)?;
    Ok(())
}

/// What everything else is imported from.
const ROOTS: [&str; 4] = [
    "tollgate/v1/tollgate.proto",
    "envoy/service/ratelimit/v3/rls.proto",
    "envoy/service/rate_limit_quota/v3/rlqs.proto",
    "envoy/service/auth/v3/external_auth.proto",
];
