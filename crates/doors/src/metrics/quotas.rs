//! What is counted about quotas that Envoys enforce themselves.

use super::family::Family;
use super::page::{alone, counter, one_count};
use crate::grpc::{QUOTA_KINDS, QuotaCounts};

pub(super) fn of_quotas(counts: &QuotaCounts) -> Vec<Family> {
    let told = QUOTA_KINDS.iter().zip(counts.told);
    let told = told.map(|(kind, count)| (vec![("kind", (*kind).to_owned())], count));
    vec![
        alone(
            "tollgate_quota_streams",
            "Envoys that report how much of their quotas they use, by streams that are open.",
            counts.streams,
        ),
        alone("tollgate_quota_buckets", "Buckets that they report.", counts.buckets),
        counter(
            "tollgate_quota_assignments",
            "What they were told about buckets: to enforce a share of a limit, to let everybody \
             pass, or nobody, or to abandon a bucket without requests. Renewals count.",
            told.collect(),
        ),
        counter(
            "tollgate_quota_expired",
            "Shares of limits that ended because nobody reported in time.",
            one_count(counts.expired),
        ),
        counter(
            "tollgate_quota_refused",
            "Streams and reports of theirs that were refused, because they were wrong or too many.",
            one_count(counts.refused),
        ),
    ]
}
