//! Laws: whatever happens, the limit holds; and what is left and what is lent are never more than
//! there can be. The runner looks at both after every step.

use proptest::prelude::*;

use crate::fleet::Fleet;
use crate::plan::{Plan, Subject, troubled};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_bucket_that_is_lent_keeps_its_bound(plan in troubled(&BUCKETS)) {
        holds(&plan)?;
    }

    #[test]
    fn a_window_that_is_lent_keeps_its_limit(plan in troubled(&WINDOWS)) {
        holds(&plan)?;
    }

    #[test]
    fn permits_that_are_lent_are_never_too_many(plan in troubled(&PERMITS)) {
        holds(&plan)?;
    }
}

fn holds(plan: &Plan) -> Result<(), TestCaseError> {
    Fleet::run(plan).map(|_| ()).map_err(TestCaseError::fail)
}

pub(crate) const BUCKETS: [Subject; 7] = [
    Subject::Bucket("100/s"),
    Subject::Bucket("1k/s"),
    Subject::Bucket("333/s burst 400"),
    Subject::Bucket("20/s burst 60"),
    Subject::Bucket("9973/s burst 5k"),
    Subject::Bucket("100/min"),
    Subject::Police("100/s burst 80"),
];

pub(crate) const WINDOWS: [Subject; 7] = [
    Subject::Fixed("1k/s"),
    Subject::Fixed("100/2s"),
    Subject::Jittered("300/s"),
    Subject::Jittered("100/3s"),
    Subject::Daily("200/day"),
    Subject::Sliding("1k/s"),
    Subject::Sliding("100/2s"),
];

const PERMITS: [Subject; 2] = [Subject::Permits(40), Subject::Permits(5)];
