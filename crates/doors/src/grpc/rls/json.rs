//! The same in JSON, as protocol buffers are written in it: `POST /json`.

use ::http::StatusCode;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use prost::Message as _;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use tollgate::Timer as _;
use tollgate_proto::envoy::config::core::v3::HeaderValue;
use tollgate_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use tollgate_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use tollgate_proto::envoy::service::ratelimit::v3::rate_limit_response::{Code, rate_limit::Unit};
use tollgate_proto::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use tollgate_proto::envoy::r#type::v3::RateLimitUnit;

use crate::connection::Peer;
use crate::grpc::frame::{self, Refusal};
use crate::grpc::{Asking, LONGEST_DELAY};
use crate::respond;
use crate::web::Answer;

/// The answer to a body: 200 if it may pass, 429 if not.
pub(in crate::grpc) async fn answer_json(asking: &Asking, peer: &Peer, body: &[u8]) -> Answer {
    let asked = match serde_json::from_slice::<Asked>(body) {
        Ok(asked) => RateLimitRequest::from(asked).encode_to_vec(),
        Err(error) => {
            let detail: String = error.to_string().chars().take(LONGEST).collect();
            return respond::problem(StatusCode::BAD_REQUEST, &detail);
        }
    };
    let (answer, delay) = match asking.in_turn(peer, None, |it| it.should_rate_limit(&asked)).await
    {
        Ok((answer, delay)) => (answer.slice(frame::PREFIX..), delay),
        Err(Refusal::Call { message, .. }) => {
            return respond::problem(StatusCode::BAD_REQUEST, &message);
        }
        Err(Refusal::NoCall | Refusal::Wait(_)) => {
            return respond::problem(StatusCode::BAD_REQUEST, "no call");
        }
    };
    if !delay.is_zero() {
        asking.service.clock().sleep(delay.min(LONGEST_DELAY)).await;
    }
    // What we have written can be read.
    let answer = RateLimitResponse::decode(answer).unwrap_or_default();
    let status = match answer.overall_code() {
        Code::Ok => StatusCode::OK,
        _ => StatusCode::TOO_MANY_REQUESTS,
    };
    // Texts and numbers can always be written.
    let text = serde_json::to_vec(&Told::from(&answer)).unwrap_or_default();
    respond::json(status, text.into())
}

/// A `RateLimitRequest`. Names are taken in both of their forms, as protocol buffers want it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Asked {
    #[serde(default)]
    domain: String,
    #[serde(default)]
    descriptors: Vec<AskedDescriptor>,
    #[serde(default, alias = "hits_addend", deserialize_with = "number")]
    hits_addend: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct AskedDescriptor {
    #[serde(default)]
    entries: Vec<AskedEntry>,
    limit: Option<AskedLimit>,
    #[serde(default, alias = "hits_addend", deserialize_with = "number")]
    hits_addend: Option<u64>,
    #[serde(default, alias = "is_negative_hits")]
    is_negative_hits: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedEntry {
    #[serde(default)]
    key: String,
    #[serde(default)]
    value: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct AskedLimit {
    #[serde(default, alias = "requests_per_unit")]
    requests_per_unit: u32,
    #[serde(default)]
    unit: AskedUnit,
}

/// By its name, or by its number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum AskedUnit {
    Name(String),
    Number(i32),
}

impl Default for AskedUnit {
    fn default() -> Self {
        Self::Number(RateLimitUnit::Unknown.into())
    }
}

/// A number, also as a text, which is how large ones are written.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Number(u64),
        Text(String),
    }
    match Option::<Number>::deserialize(from)? {
        None => Ok(None),
        Some(Number::Number(number)) => Ok(Some(number)),
        Some(Number::Text(text)) => text.parse().map(Some).map_err(D::Error::custom),
    }
}

impl From<Asked> for RateLimitRequest {
    fn from(asked: Asked) -> Self {
        let descriptors = asked.descriptors.into_iter();
        Self {
            domain: asked.domain,
            // What all descriptors spend that do not say it themselves; they have more room.
            hits_addend: None,
            descriptors: descriptors
                .map(|one| RateLimitDescriptor {
                    hits_addend: one.hits_addend.or(asked.hits_addend),
                    ..one.into()
                })
                .collect(),
        }
    }
}

impl From<AskedDescriptor> for RateLimitDescriptor {
    fn from(asked: AskedDescriptor) -> Self {
        let entries = asked.entries.into_iter();
        let limit = asked.limit.map(|limit| RateLimitOverride {
            requests_per_unit: limit.requests_per_unit,
            unit: match limit.unit {
                AskedUnit::Number(number) => number,
                // One that is not known is refused where it is used.
                AskedUnit::Name(name) => {
                    RateLimitUnit::from_str_name(&name).unwrap_or(RateLimitUnit::Unknown).into()
                }
            },
        });
        Self {
            entries: entries.map(|AskedEntry { key, value }| Entry { key, value }).collect(),
            limit,
            hits_addend: asked.hits_addend,
            is_negative_hits: asked.is_negative_hits,
        }
    }
}

/// A `RateLimitResponse`. What has its usual value is left out.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    overall_code: &'static str,
    statuses: Vec<ToldStatus<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    response_headers_to_add: Vec<ToldHeader<'a>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    raw_body: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToldStatus<'a> {
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_limit: Option<ToldLimit<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    limit_remaining: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_until_reset: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToldLimit<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    requests_per_unit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct ToldHeader<'a> {
    key: &'a str,
    value: &'a str,
}

const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl<'a> From<&'a RateLimitResponse> for Told<'a> {
    fn from(answer: &'a RateLimitResponse) -> Self {
        let statuses = answer.statuses.iter().map(|status| ToldStatus {
            code: status.code().as_str_name(),
            current_limit: status.current_limit.as_ref().map(|limit| ToldLimit {
                name: &limit.name,
                requests_per_unit: limit.requests_per_unit,
                unit: Some(limit.unit())
                    .filter(|unit| *unit != Unit::Unknown)
                    .map(|unit| unit.as_str_name()),
            }),
            limit_remaining: status.limit_remaining,
            duration_until_reset: status
                .duration_until_reset
                .as_ref()
                .map(|time| format!("{}s", time.seconds)),
        });
        let headers = answer.response_headers_to_add.iter();
        Self {
            overall_code: answer.overall_code().as_str_name(),
            statuses: statuses.collect(),
            response_headers_to_add: headers
                .map(|HeaderValue { key, value, .. }| ToldHeader { key, value })
                .collect(),
            raw_body: BASE64_STANDARD.encode(&answer.raw_body),
        }
    }
}

/// The longest that is said about a body, in characters.
const LONGEST: usize = 400;
