//! Against a model: a moment for each key, and exact arithmetic.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Ask, Decision, Retry};

use crate::{quota, throttle};

/// A limit as commands say it.
#[derive(Clone, Copy, Debug)]
struct Said {
    max_burst: u64,
    count: u64,
    seconds: u32,
}

#[derive(Clone, Copy, Debug)]
struct Command {
    key: u8,
    said: Said,
    cost: u64,
    /// Before it comes.
    passes: Duration,
}

/// When each key has everything back, in 64ths of a nanosecond.
#[derive(Default)]
struct Model(HashMap<u8, u128>);

impl Model {
    fn check(&mut self, now: u128, command: Command) -> (bool, u128, Option<Retry>, Duration) {
        let Command { key, said: Said { max_burst, count, seconds }, cost, .. } = command;
        let (limit, period) = (u128::from(max_burst) + 1, u128::from(seconds) * 1_000_000_000);
        let interval = (period * 64).div_ceil(u128::from(count));
        let capacity = limit * interval;
        let back = self.0.get(&key).copied().unwrap_or(0).max(now);
        let after = back + u128::from(cost) * interval;
        let nanos = |time: u128| Duration::from_nanos(time.div_ceil(64) as u64);
        let left = |back: u128| (now + capacity).saturating_sub(back) / interval;
        if u128::from(cost) > limit {
            return (false, left(back), Some(Retry::Never), nanos(back - now));
        }
        if cost > 0 && after > now + capacity {
            let wait = nanos(after - now - capacity);
            return (false, left(back), Some(Retry::After(wait)), nanos(back - now));
        }
        self.0.insert(key, after);
        (true, left(after), None, nanos(after - now))
    }
}

fn said() -> impl Strategy<Value = Said> {
    let count = prop_oneof![Just(1), Just(7), 1u64..100, 1u64..1_000_000];
    (0u64..50, count, prop_oneof![Just(1), 1u32..100, Just(86_400)])
        .prop_map(|(max_burst, count, seconds)| Said { max_burst, count, seconds })
}

fn commands() -> impl Strategy<Value = Vec<Command>> {
    let passes = prop_oneof![
        Just(Duration::ZERO),
        (0u64..2_000_000_000).prop_map(Duration::from_nanos),
        (0u64..200).prop_map(Duration::from_secs),
    ];
    // Of few limits, so that keys often meet the same ones.
    prop::collection::vec(said(), 1..5).prop_flat_map(move |limits| {
        let command = (0u8..4, prop::sample::select(limits), 0u64..8, passes.clone())
            .prop_map(|(key, said, cost, passes)| Command { key, said, cost, passes });
        prop::collection::vec(command, 1..80)
    })
}

fn expect(decision: Decision, model: (bool, u128, Option<Retry>, Duration), of: Command) {
    let (allowed, left, retry, reset) = model;
    assert_eq!(decision.is_allowed(), allowed, "{of:?}");
    assert_eq!(u128::from(decision.remaining()), left, "{of:?}");
    assert_eq!((decision.retry(), decision.reset_after()), (retry, reset), "{of:?}");
    assert_eq!(decision.limit(), of.said.max_burst + 1);
}

fn ask(command: Command) -> Ask<u64> {
    let Said { max_burst, count, seconds } = command.said;
    Ask { key: u64::from(command.key), quota: quota(max_burst, count, seconds), cost: command.cost }
}

proptest! {
    #[test]
    fn every_decision_is_that_of_the_model(commands in commands()) {
        let (throttle, clock) = throttle(100);
        let (mut model, mut now) = (Model::default(), Duration::ZERO);
        for command in commands {
            clock.advance(command.passes);
            now += command.passes;
            let Ask { key, quota, cost } = ask(command);
            let decision = throttle.check(&key, quota, cost).unwrap();
            expect(decision, model.check(now.as_nanos() * 64, command), command);
        }
    }

    #[test]
    fn a_batch_is_its_commands_one_by_one(commands in commands()) {
        let (throttle, _) = throttle(100);
        let mut model = Model::default();
        let asks: Vec<_> = commands.iter().copied().map(ask).collect();
        let mut next = 0;
        throttle.check_batch(&asks, |at, answer| {
            assert_eq!(at, next);
            next += 1;
            expect(answer.unwrap(), model.check(0, commands[at]), commands[at]);
        });
        prop_assert_eq!(next, commands.len());
    }
}

#[test]
fn a_batch_goes_on_around_what_is_no_limit() {
    let (throttle, _) = throttle(100);
    let (good, bad) = (quota(0, 1, 60), quota(400, 1, 86_400));
    let quota_of = |at| if at % 40 == 7 { bad } else { good };
    let asks: Vec<_> =
        (0..100u64).map(|at| Ask { key: at % 50, quota: quota_of(at), cost: 1 }).collect();
    let mut answers = Vec::new();
    throttle.check_batch(&asks, |at, answer| {
        assert_eq!(at, answers.len());
        answers.push(answer.map(|decision| decision.is_allowed()).ok());
    });
    for (at, answer) in answers.into_iter().enumerate() {
        let expected = match at {
            at if at % 40 == 7 => None,
            // The first time its key came with a good limit.
            at => Some(at < 50 || [57, 97].contains(&at)),
        };
        assert_eq!(answer, expected, "at {at}");
    }
}
