//! The protocol buffers that Tollgate speaks: its own, and those of Envoy that it answers.
//!
//! What is in `proto` is written for Tollgate. What it shares with Envoy has the names and numbers
//! of Envoy, so that both understand the same bytes; fields that Tollgate has no use for are left
//! out, and skipped when they come.
//!
//! ```
//! use tollgate_proto::tollgate::v1::CheckRequest;
//! let request = CheckRequest { path: "/v1/items".to_owned(), ..CheckRequest::default() };
//! assert_eq!(request.cost, None, "which counts once");
//! ```

#![forbid(unsafe_code)]

/// Everything that is spoken, with its comments left in the files: for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

pub use generated::{envoy, google, tollgate};
pub use prost_types::Duration;

/// What the files say is documented there.
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::use_self,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::allow_attributes_without_reason,
    clippy::disallowed_methods,
    reason = "nobody writes it by hand"
)]
mod generated {
    pub mod tollgate {
        pub mod v1 {
            tonic::include_proto!("tollgate.v1");
        }
    }
    pub mod envoy {
        pub mod config {
            pub mod core {
                pub mod v3 {
                    tonic::include_proto!("envoy.config.core.v3");
                }
            }
        }
        pub mod extensions {
            pub mod common {
                pub mod ratelimit {
                    pub mod v3 {
                        tonic::include_proto!("envoy.extensions.common.ratelimit.v3");
                    }
                }
            }
        }
        pub mod service {
            pub mod auth {
                pub mod v3 {
                    tonic::include_proto!("envoy.service.auth.v3");
                }
            }
            pub mod rate_limit_quota {
                pub mod v3 {
                    tonic::include_proto!("envoy.service.rate_limit_quota.v3");
                }
            }
            pub mod ratelimit {
                pub mod v3 {
                    tonic::include_proto!("envoy.service.ratelimit.v3");
                }
            }
        }
        pub mod r#type {
            pub mod v3 {
                tonic::include_proto!("envoy.r#type.v3");
            }
        }
    }
    pub mod google {
        pub mod rpc {
            tonic::include_proto!("google.rpc");
        }
    }
}
