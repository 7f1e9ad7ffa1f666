//! Permits that more nodes want than there are.

use std::num::NonZeroU32;
use std::time::Duration;

use tollgate_core::lease::{Account, Borrower, Lender, Node, Receipt, Spend};
use tollgate_core::{Phase, Tick};

const MOST: u64 = 6;

/// How long a request takes, in milliseconds.
const LASTS: u64 = 12;

struct Fleet {
    lender: Lender,
    account: Account,
    nodes: Vec<Borrower>,
    /// Who holds a permit until when.
    under_way: Vec<(u64, usize, Receipt)>,
    taken: Vec<u64>,
}

impl Fleet {
    fn new(nodes: u64) -> Self {
        let most = NonZeroU32::new(u32::try_from(MOST).unwrap()).unwrap();
        let lender = Lender::of_permits(most, Duration::from_millis(5));
        let account = lender.open(Tick::ZERO, Phase::default());
        let terms = lender.terms().unwrap();
        let node = |number| Borrower::new(Node { number, incarnation: 1 }, terms);
        let nodes: Vec<_> = (0..nodes).map(node).collect();
        let taken = vec![0; nodes.len()];
        Self { lender, account, nodes, under_way: Vec::new(), taken }
    }

    /// A millisecond in which each of so many clients of a node has a permit, or wants one.
    fn pass(&mut self, millis: u64, clients: &[(usize, usize)]) {
        let now = Tick::ZERO.after(Duration::from_millis(millis));
        let ended: Vec<_> = self.under_way.extract_if(.., |(end, ..)| *end <= millis).collect();
        for (_, node, receipt) in ended {
            self.nodes[node].finish(now, receipt);
        }
        for (node, clients) in clients.iter().copied() {
            let busy = self.under_way.iter().filter(|(_, of, _)| *of == node).count();
            for _ in busy..clients {
                if let Spend::Taken(receipt) = self.nodes[node].spend(now, 1) {
                    self.under_way.push((millis + LASTS, node, receipt));
                    self.taken[node] += 1;
                }
            }
        }
        for node in &mut self.nodes {
            if let Some(ask) = node.exchange(now) {
                let grant = self.lender.exchange(&mut self.account, now, &ask).unwrap();
                node.answer(now, &grant);
            }
        }
        assert!(self.under_way.len() as u64 <= MOST, "{} are in use", self.under_way.len());
    }
}

#[test]
fn a_node_that_comes_later_gets_its_part_of_what_others_use_all_the_time() {
    let mut fleet = Fleet::new(3);
    for millis in 0..2_000 {
        fleet.pass(millis, &[(0, 6), (2, 6)]);
    }
    assert_eq!(fleet.taken[1], 0);
    fleet.taken = vec![0; 3];
    let seconds = 120;
    for millis in 2_000..2_000 + 1_000 * seconds {
        fleet.pass(millis, &[(0, 6), (1, 6), (2, 6)]);
    }
    let sum: u64 = fleet.taken.iter().sum();
    for taken in &fleet.taken {
        assert!(*taken > sum / 10, "one got {taken} of {sum}: {:?}", fleet.taken);
    }
    // What is given up is not used for a moment.
    let most = 1_000 * seconds * MOST / LASTS;
    assert!(sum * 100 > most * 95, "{sum} of {most} were used");
}

#[test]
fn one_node_alone_hardly_loses_by_giving_up() {
    let mut fleet = Fleet::new(1);
    let seconds = 60;
    for millis in 0..1_000 * seconds {
        fleet.pass(millis, &[(0, 9)]);
    }
    let most = 1_000 * seconds * MOST / LASTS;
    assert!(fleet.taken[0] * 100 > most * 98, "{} of {most} were used", fleet.taken[0]);
}

#[test]
fn what_one_node_does_not_need_is_not_missing_at_another() {
    let mut fleet = Fleet::new(2);
    // The first is lent all of them, and then needs four.
    for millis in 0..1_000 {
        fleet.pass(millis, &[(0, 6)]);
    }
    for millis in 1_000..3_000 {
        fleet.pass(millis, &[(0, 4), (1, 2)]);
    }
    fleet.taken = vec![0; 2];
    for millis in 3_000..13_000 {
        fleet.pass(millis, &[(0, 4), (1, 2)]);
    }
    for (taken, clients) in fleet.taken.iter().zip([4, 2]) {
        let most = clients * 10_000 / LASTS;
        assert!(taken * 100 > most * 90, "{taken} of {most} got one: {:?}", fleet.taken);
    }
}
