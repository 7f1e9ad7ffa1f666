//! Keys come to rest, other keys take over their slots, and they come back.

use std::time::Duration;

use crate::crowd::{Dice, Meeting, Subject, crowd};
use crate::moving::{SLOW, expect_bound, limits, run};

const KEYS: usize = 400;

/// Most requests are for a few keys, which are live most of the time; the others come and go.
fn skewed(dice: &mut Dice) -> usize {
    let spread = [4, 40, KEYS][dice.below(3)];
    dice.below(spread)
}

#[test]
fn a_key_that_lost_its_slot_at_rest_gets_no_more_than_its_bound() {
    for (limit, bound) in limits() {
        for threads in [2, 4, 8] {
            let subject = Subject::new(&limit, 40);
            let sizes = (threads, 80_000 / threads, KEYS);
            let passes = run(&subject, sizes, SLOW, skewed);
            expect_bound(&passes, bound, &limit);
            let pressure = subject.counters.pressure();
            assert!(pressure.overflowed > 0 && pressure.promoted > 0, "{limit}: there was room");
            let used = passes.iter().filter(|passes| !passes.is_empty()).count();
            assert!(used > KEYS / 2, "{limit}: only {used} keys passed");
        }
    }
}

/// All threads bring the same two or three keys at the same moment, into a table so small that they
/// want the same slots, whose owners are at rest and come back at the same moment, too.
#[test]
fn keys_that_fight_for_slots_get_one_slot_each() {
    const ROUNDS: usize = 1_500;
    for (limit, _) in limits() {
        for threads in [3, 6] {
            let (subject, meeting) = (Subject::new(&limit, 1), Meeting::of(threads));
            let counts = crowd(threads, |thread| {
                let mut dice = Dice::new(thread);
                let mut counts = vec![[0u64; 30]; ROUNDS];
                for count in &mut counts {
                    // The clock stands still within a round, so a key has three to spend.
                    meeting.wait();
                    for _ in 0..8 {
                        let key = dice.below(30);
                        count[key] += u64::from(subject.check(key));
                    }
                    meeting.wait();
                    if thread == 0 {
                        subject.clock.advance(Duration::from_secs(1));
                    }
                }
                counts
            });
            for round in 0..ROUNDS {
                for key in 0..30 {
                    let got: u64 = counts.iter().map(|counts| counts[round][key]).sum();
                    assert!(got <= 3, "{limit}: key {key} got {got} in round {round}");
                }
            }
        }
    }
}
