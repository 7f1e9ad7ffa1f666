//! Who gets how much: nobody so much that others find nothing, and those who want little all of it.

use std::time::Duration;

use tollgate_core::lease::{Exchange, Lender, Node};
use tollgate_core::{Anchor, Limit, Phase, Tick};

#[test]
fn nobody_gets_so_much_that_a_newcomer_finds_nothing() {
    let limit = Limit::token_bucket("1k/s").unwrap();
    let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).unwrap();
    let mut account = lender.open(Tick::ZERO, Phase::default());
    let mut tokens = |number, want, least| {
        let strict = Exchange::strict(Node { number, incarnation: 1 }, 0);
        let ask = Exchange { want, least, ..strict };
        lender.exchange(&mut account, Tick::ZERO, &ask).unwrap().tokens
    };
    assert_eq!(tokens(1, 5_000, 0), 500, "half of all");
    assert_eq!(tokens(2, 5_000, 0), 167, "a third of the rest");
    assert_eq!(tokens(3, 5, 0), 5, "all that it wants");
    assert_eq!(tokens(4, 5_000, 400), 0, "so many are not left, and fewer are of no use");
    assert_eq!(tokens(5, 5_000, 300), 300, "one request needs so many");
}
