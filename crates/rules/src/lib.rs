//! Rules: what an operator writes about limits, read, checked, and matched with requests.
//!
//! Reading order: [`Source`] and [`Document`] (text as a tree, each value with its place),
//! [`Report`] (all that is wrong with it), [`Attribute`] and [`PathPattern`] (what rules speak
//! of), [`Request`] (what is decided about).

#![forbid(unsafe_code)]

mod attribute;
mod diagnostic;
mod document;
mod path;
mod read;
mod request;
mod source;

pub use attribute::{Attribute, AttributeError};
pub use diagnostic::{Diagnostic, Report, Severity};
pub use document::Document;
pub use path::{PathError, PathPattern};
pub use request::Request;
pub use source::{Format, Place, Source};
