//! What Envoy is told about a bucket, as a message.

use tollgate_proto::Duration;
use tollgate_proto::envoy::service::rate_limit_quota::v3::BucketId;
use tollgate_proto::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::BucketAction;
use tollgate_proto::envoy::service::rate_limit_quota::v3::rate_limit_quota_response::bucket_action::{
    AbandonAction, BucketAction as Kind, QuotaAssignmentAction,
};
use tollgate_proto::envoy::r#type::v3::rate_limit_strategy::{BlanketRule, Strategy};
use tollgate_proto::envoy::r#type::v3::{RateLimitStrategy, TokenBucket};

use crate::grpc::rlqs::bucket;
use crate::grpc::rlqs::desk::{Action, TIME_TO_LIVE, Told};

/// What Envoy is to do, in this order.
pub(super) fn actions(id: bucket::BucketId, action: Action) -> Vec<BucketAction> {
    let kinds = match action {
        Action::Assign(told) => vec![assignment(told)],
        // A bucket that follows a bucket begins with as large a part of it as that had left, in
        // Envoy 1.40, and is taken for the same if only the seconds differ. One that follows
        // something else begins full. Envoy takes both steps before it looks at another request.
        Action::Replace(share) => {
            vec![assignment(Told::DenyAll), assignment(Told::Share(share))]
        }
        Action::Abandon => vec![Kind::AbandonAction(AbandonAction {})],
    };
    let action = |kind| BucketAction {
        bucket_id: Some(BucketId { bucket: id.clone() }),
        bucket_action: Some(kind),
    };
    kinds.into_iter().map(action).collect()
}

fn assignment(told: Told) -> Kind {
    Kind::QuotaAssignmentAction(QuotaAssignmentAction {
        assignment_time_to_live: Some(seconds(TIME_TO_LIVE.as_secs() as i64)),
        rate_limit_strategy: strategy(told)
            .map(|strategy| RateLimitStrategy { strategy: Some(strategy) }),
    })
}

fn strategy(told: Told) -> Option<Strategy> {
    match told {
        Told::Nothing => None,
        Told::AllowAll => Some(Strategy::BlanketRule(BlanketRule::AllowAll.into())),
        Told::DenyAll => Some(Strategy::BlanketRule(BlanketRule::DenyAll.into())),
        Told::Share(share) => Some(Strategy::TokenBucket(TokenBucket {
            max_tokens: share.tokens,
            tokens_per_fill: Some(share.fill.tokens),
            fill_interval: Some(seconds(share.fill.seconds.into())),
        })),
    }
}

const fn seconds(seconds: i64) -> Duration {
    Duration { seconds, nanos: 0 }
}
