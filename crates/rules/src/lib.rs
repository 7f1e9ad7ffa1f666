//! Rules: what an operator writes about limits, read, checked, and matched with requests.
//!
//! Reading order: [`Source`] and [`Document`] (text as a tree, each value with its place),
//! [`Report`] (all that is wrong with it), [`Attribute`] and [`PathPattern`] (what rules speak
//! of), [`Condition`] and [`CostExpression`] (what the rest of them cannot say), [`GraphqlCost`]
//! (what a query costs), [`Request`] and [`Outcome`] (what is decided about), [`ClientIp`] and
//! [`Geo`] (whom it comes from, and where they are), [`RuleSet`] and [`Facts`] (which rules
//! apply). For people: [`Rule::in_words`] (what a rule says), [`Explanation`] (why it applies),
//! [`Changes`] (what another version changes), [`Case`] (what a file says of itself),
//! [`schema`] (what editors know). Beside that way: [`format`](fn@format) (rule files in their
//! canonical form) and [`import`] (limits of other software as rules).
//!
//! It counts nothing, and knows no clock: `tollgate::Engine` does that with what is read here.

#![forbid(unsafe_code)]

mod attribute;
mod budget;
mod case;
mod check;
mod client_ip;
mod condition;
mod cost;
mod covers;
mod descriptors;
mod diagnostic;
mod diff;
mod document;
mod excerpt;
mod explain;
mod facts;
mod files;
mod find;
mod fmt;
mod geo;
mod graphql;
mod hops;
mod import;
mod index;
mod key;
mod lasting;
mod matching;
mod modes;
mod needs;
mod networks;
mod normal;
mod outcome;
mod overrides;
mod path;
mod read;
mod request;
mod request_line;
mod rule;
mod rule_file;
mod rule_set;
mod schema;
mod settings;
mod short;
mod source;
mod tiered;
mod tiers;
mod version;
mod window;
mod words;

pub use attribute::{Attribute, AttributeError};
pub use case::{Case, Comparison, Expect, Given, Relation, Step};
pub use client_ip::{ClientHeader, ClientIp, ClientIpError};
pub use condition::{Condition, CostExpression, EvaluationError, ExpressionError};
pub use cost::{Cost, CostError};
pub use descriptors::Descriptors;
pub use diagnostic::{Diagnostic, Report, Severity};
pub use diff::{Change, Changes, Direction, OverrideChange, OverrideChanges, RuleChange};
pub use document::Document;
pub use explain::{
    AppliedLimit, Applies, ClientReason, Explanation, KeyValue, Reason, RuleExplanation, StandsFor,
    Verdict,
};
pub use facts::{Facts, Value};
pub use files::{Files, Folder, NoFiles, text};
pub use find::UnknownRule;
pub use fmt::format;
pub use geo::{Country, CountryError, Geo, GeoError};
pub use graphql::{GraphqlCache, GraphqlCost, GraphqlError};
pub use import::{ImportError, ImportKind, ImportNote, Imported, import};
pub use lasting::Lasting;
pub use needs::Needs;
pub use networks::{Networks, NetworksError};
pub use outcome::Outcome;
pub use path::{PathError, PathPattern};
pub use request::Request;
pub use request_line::{RequestLine, RequestLineError};
pub use rule::Rule;
pub use rule_set::{Applying, LoadError, RuleSet};
pub use schema::schema;
pub use settings::{Consistency, Deny, HeaderStyle, Mode, OnStoreFailure, Priority};
pub use source::{Format, Place, Source};
pub use tiers::Tiers;
pub use version::Version;
