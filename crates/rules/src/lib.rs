//! Rules: what an operator writes about limits, read, checked, and matched with requests.
//!
//! Reading order: [`Source`] and [`Document`] (text as a tree, each value with its place),
//! [`Report`] (all that is wrong with it), [`Attribute`] and [`PathPattern`] (what rules speak
//! of), [`Request`] (what is decided about).

#![forbid(unsafe_code)]

mod attribute;
mod client_ip;
mod diagnostic;
mod document;
mod hops;
mod networks;
mod path;
mod read;
mod request;
mod source;

pub use attribute::{Attribute, AttributeError};
pub use client_ip::{ClientHeader, ClientIp, ClientIpError};
pub use diagnostic::{Diagnostic, Report, Severity};
pub use document::Document;
pub use networks::{Networks, NetworksError};
pub use path::{PathError, PathPattern};
pub use request::Request;
pub use source::{Format, Place, Source};
