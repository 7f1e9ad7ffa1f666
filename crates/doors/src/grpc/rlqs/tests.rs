use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use tollgate_proto::envoy::service::rate_limit_quota::v3::BucketId;
use tollgate_proto::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::bucket_action::BucketAction as Kind;
use tollgate_proto::envoy::service::rate_limit_quota::v3::rate_limit_quota_usage_reports::BucketQuotaUsage;
use tollgate_proto::envoy::r#type::v3::TokenBucket;
use tollgate_proto::envoy::r#type::v3::rate_limit_strategy::{BlanketRule, Strategy as Assigned};

use super::*;
use crate::door::Name;
use crate::grpc::frame::Code;
use crate::grpc::tests::{asking, with_store};
use crate::service::{Service, in_turn};

const RULES: &str = "rules:
  - { name: tenants, match: { domain: shop }, key: [descriptor.tenant], limit: 7200/h burst 5 }
  - { name: trial, match: { domain: shop }, key: [], limit: 1/h, mode: shadow }
  - { name: partners, match: { domain: partners }, key: [], limit: unlimited }";

struct Server {
    asking: Arc<Asking>,
    desk: Arc<Desk>,
}

impl Server {
    fn new(rules: &str) -> Self {
        Self { asking: Arc::new(asking(rules)), desk: Arc::default() }
    }

    fn stream(&self) -> Reporter {
        Reporter::new(&self.asking, &self.desk).unwrap()
    }

    fn service(&self) -> &Service {
        &self.asking.service
    }
}

fn usage(id: &[(&str, &str)], allowed: u64) -> BucketQuotaUsage {
    let bucket = id.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    BucketQuotaUsage {
        bucket_id: Some(BucketId { bucket: bucket.collect() }),
        num_requests_allowed: allowed,
        ..BucketQuotaUsage::default()
    }
}

fn reports(domain: &str, usages: Vec<BucketQuotaUsage>) -> RateLimitQuotaUsageReports {
    RateLimitQuotaUsageReports { domain: domain.to_owned(), bucket_quota_usages: usages }
}

/// What is assigned to the buckets in a report.
fn assigned(stream: &mut Reporter, domain: &str, usages: Vec<BucketQuotaUsage>) -> Vec<Assigned> {
    let answer = stream.report(reports(domain, usages)).unwrap().unwrap_or_default();
    let assigned = answer.bucket_action.into_iter().map(|action| match action.bucket_action {
        Some(Kind::QuotaAssignmentAction(it)) => {
            assert!(it.assignment_time_to_live.is_some_and(|time| time.seconds == 60));
            it.rate_limit_strategy.unwrap().strategy.unwrap()
        }
        other => panic!("{other:?} is no assignment"),
    });
    assigned.collect()
}

fn bucket(max_tokens: u32, tokens_per_fill: u32) -> Assigned {
    let fill_interval = Some(tollgate_proto::Duration { seconds: 1, nanos: 0 });
    let tokens_per_fill = Some(tokens_per_fill);
    Assigned::TokenBucket(TokenBucket { max_tokens, tokens_per_fill, fill_interval })
}

fn refused(told: Result<Option<impl std::fmt::Debug>, Refusal>) -> Option<Code> {
    match told {
        Err(Refusal::Call { code, .. }) => Some(code),
        _ => None,
    }
}

#[test]
fn a_bucket_is_given_what_its_rule_allows_and_has_not_been_spent() {
    let server = Server::new(RULES);
    let mut stream = server.stream();
    let usages = vec![usage(&[("tenant", "a")], 1), usage(&[("tenant", "b")], 0)];
    assert_eq!(assigned(&mut stream, "shop", usages), [bucket(4, 2), bucket(5, 2)]);
    let again = vec![usage(&[("tenant", "a")], 1), usage(&[("tenant", "b")], 0)];
    assert_eq!(assigned(&mut stream, "", again), [], "it knows");
}

#[test]
fn what_has_passed_is_spent_for_all_doors() {
    let server = Server::new(RULES);
    assigned(&mut server.stream(), "shop", vec![usage(&[("tenant", "a")], 3)]);
    let attributes = [("domain", "shop"), ("descriptor.tenant", "a")];
    let request = tollgate::Request::new("GET", "/").attributes(&attributes);
    assert_eq!(server.service().peek(&request.cost(2)).decision().remaining(), 2);
    assigned(&mut server.stream(), "shop", vec![usage(&[("tenant", "a")], u64::MAX)]);
    assert!(!server.service().check(Name::Grpc, &request.cost(2)).is_allowed());
}

#[test]
fn what_has_passed_is_spent_of_limits_that_are_shared() {
    let rules = "rules: [{ name: a, match: { domain: shop }, key: [], limit: 5/day }]";
    with_store(rules, async |asking| {
        let server = Server { asking: Arc::new(asking), desk: Arc::default() };
        assigned(&mut server.stream(), "shop", vec![usage(&[("tenant", "a")], 3)]);
        let request = tollgate::Request::new("GET", "/").attributes(&[("domain", "shop")]);
        let left = async || {
            let look = |turn| server.service().try_peek(&request, turn);
            in_turn(look).await.decision().remaining()
        };
        // The store is told within a moment.
        let charged = async {
            while left().await > 2 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), charged).await.expect("it is charged");
    });
}

#[test]
fn whoever_meets_no_limit_may_let_everybody_pass() {
    let server = Server::new(RULES);
    for (domain, id) in [("partners", ("x", "y")), ("other", ("x", "y")), ("shop", ("x", "y"))] {
        let told = assigned(&mut server.stream(), domain, vec![usage(&[id], 1)]);
        assert_eq!(told, [Assigned::BlanketRule(BlanketRule::AllowAll.into())], "{domain}");
    }
}

#[test]
fn buckets_of_the_same_key_share_its_limit() {
    let server = Server::new(RULES);
    let (mut one, mut other) = (server.stream(), server.stream());
    let first = usage(&[("tenant", "a"), ("path", "/x")], 0);
    assert_eq!(assigned(&mut one, "shop", vec![first]), [bucket(5, 2)]);
    let second = usage(&[("tenant", "a"), ("path", "/y")], 0);
    assert_eq!(assigned(&mut other, "shop", vec![second.clone()]), []);
    drop(one);
    assert_eq!(assigned(&mut other, "shop", vec![second]), [], "it may still be used");
}

#[test]
fn other_rules_reach_envoy_with_the_next_report() {
    let server = Server::new(RULES);
    let mut stream = server.stream();
    let report = |allowed| vec![usage(&[("tenant", "a")], allowed)];
    assert_eq!(assigned(&mut stream, "shop", report(0)), [bucket(5, 2)]);
    let swap = |rules: &str| {
        let rules = RULES.replace("7200/h burst 5", rules);
        server.service().swap(tollgate::RuleSet::parse(&rules).unwrap()).unwrap();
    };
    swap("3/s burst 9");
    let none = Assigned::BlanketRule(BlanketRule::DenyAll.into());
    assert_eq!(assigned(&mut stream, "shop", report(5)), [none, bucket(4, 3)]);
    swap("unlimited");
    let all = Assigned::BlanketRule(BlanketRule::AllowAll.into());
    assert_eq!(assigned(&mut stream, "shop", report(0)), [all]);
}

#[test]
fn what_is_too_much_is_refused() {
    let server = Server::new(RULES);
    let refused = |usages| refused(server.stream().report(reports("shop", usages)));
    assert_eq!(refused(vec![usage(&[], 1)]), Some(Code::InvalidArgument));
    let long = "x".repeat(1024);
    assert_eq!(refused(vec![usage(&[("k", &long)], 1)]), Some(Code::ResourceExhausted));
    let keys: Vec<_> = (0..65).map(|number| number.to_string()).collect();
    let parts: Vec<_> = keys.iter().map(|key| (&**key, "v")).collect();
    assert_eq!(refused(vec![usage(&parts, 1)]), Some(Code::ResourceExhausted));
    let many = vec![BucketQuotaUsage::default(); 10_001];
    assert_eq!(refused(many), Some(Code::ResourceExhausted));
}

proptest! {
    #[test]
    fn any_report_is_answered_or_refused(
        domain in ".{0,8}",
        usages in prop::collection::vec(
            (prop::collection::btree_map(".{0,8}", ".{0,8}", 0..4), any::<u64>(), any::<u64>()),
            0..4,
        ),
    ) {
        let server = Server::new(RULES);
        let mut stream = server.stream();
        let usages: Vec<_> = usages
            .into_iter()
            .map(|(bucket, allowed, denied): (BTreeMap<String, String>, _, _)| BucketQuotaUsage {
                bucket_id: Some(BucketId { bucket }),
                num_requests_allowed: allowed,
                num_requests_denied: denied,
                ..BucketQuotaUsage::default()
            })
            .collect();
        let is_wrong = usages.iter().any(|it| it.bucket_id.as_ref().unwrap().bucket.is_empty());
        for _ in 0..2 {
            let told = stream.report(reports(&domain, usages.clone()));
            prop_assert_eq!(told.is_err(), is_wrong);
        }
    }
}
