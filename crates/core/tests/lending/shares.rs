//! Who gets how much: nobody so much that others find nothing, and those who want little all of it.

use std::time::Duration;

use tollgate_core::lease::{Exchange, Lender, Node};
use tollgate_core::{Anchor, Limit, Phase, Tick};

#[test]
fn nobody_gets_so_much_that_a_newcomer_finds_nothing() {
    let limit = Limit::token_bucket("1k/s burst 10k").unwrap();
    let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).unwrap();
    let mut account = lender.open(Tick::ZERO, Phase::default());
    let mut tokens = |number, want, least| {
        let strict = Exchange::strict(Node { number, incarnation: 1 }, 0);
        let ask = Exchange { want, least, ..strict };
        lender.exchange(&mut account, Tick::ZERO, &ask).unwrap().tokens
    };
    assert_eq!(tokens(1, 50_000, 0), 5_000, "half of all");
    assert_eq!(tokens(2, 50_000, 0), 1_667, "a third of the rest");
    assert_eq!(tokens(3, 5, 0), 5, "all that it wants");
    assert_eq!(tokens(4, 50_000, 4_000), 0, "so many are not left, and fewer are of no use");
    assert_eq!(tokens(5, 50_000, 3_300), 3_300, "one request needs so many");
    assert_eq!(tokens(6, 50_000, 0), 28, "what little is left is not worth sharing");
}
