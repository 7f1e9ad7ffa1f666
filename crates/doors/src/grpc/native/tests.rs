use proptest::prelude::*;
use tollgate_proto::tollgate::v1::{Ended, Mode, Retry};

use super::*;
use crate::grpc::tests::{asking, with_store};

fn user(name: &str) -> CheckRequest {
    CheckRequest { attributes: [("user".to_owned(), name.to_owned())].into(), ..Default::default() }
}

fn check(asking: &Asking, asked: CheckRequest) -> CheckResponse {
    asking.check(asked).unwrap().0
}

fn code<T>(told: Result<T, Refusal>) -> Option<Code> {
    match told {
        Err(Refusal::Call { code, .. }) => Some(code),
        _ => None,
    }
}

const RULES: &str = "rules:
  - { name: per-user, key: [user], limit: 2/h }
  - { name: trial, key: [user], limit: 1/h, mode: shadow, warn_at: [50%] }
  - { name: slots, match: { path: /export }, key: [], concurrent: 1 }";

#[test]
fn a_ruling_is_told_in_full() {
    let asking = asking(RULES);
    let first = check(&asking, CheckRequest { id: 7, with_rules: true, ..user("a") });
    assert!(first.allowed && first.ticket.is_empty());
    assert_eq!(
        (&*first.rule, first.limit, first.remaining, first.id),
        ("per-user", Some(2), Some(1), 7)
    );
    let each: Vec<_> = first.rules.iter().map(|it| (&*it.name, it.mode(), it.warning)).collect();
    assert_eq!(each, [("per-user", Mode::Enforce, None), ("trial", Mode::Shadow, Some(50))]);
    assert_eq!(check(&asking, CheckRequest { peek: true, ..user("a") }).remaining, Some(1));
    assert_eq!(check(&asking, user("a")).remaining, Some(0));
    let denied = check(&asking, user("a"));
    assert!(!denied.allowed && denied.rules.is_empty());
    assert_eq!(denied.retry(), Retry::After);
    assert!(denied.retry_after_ms.is_some_and(|wait| (1..=1_800_000).contains(&wait)));
    let never = check(&asking, CheckRequest { cost: Some(3), ..user("b") });
    assert_eq!((never.retry(), never.retry_after_ms), (Retry::Never, None));
    let free = check(&asking, CheckRequest::default());
    assert_eq!((free.allowed, &*free.rule, free.limit), (true, "", None));
}

#[test]
fn those_who_look_in_a_batch_hear_what_the_store_has() {
    with_store("rules: [{ name: a, key: [user], limit: 9/day }]", async |asking| {
        let ask = async |checks: Vec<CheckRequest>| {
            let message = CheckBatchRequest { checks }.encode_to_vec();
            let answer =
                asking.in_turn(&Peer::default(), None, |it| it.check_batch(&message)).await;
            let answer = CheckBatchResponse::decode(answer.unwrap().slice(frame::PREFIX..));
            answer.unwrap().answers.iter().map(|it| it.remaining.unwrap()).collect::<Vec<_>>()
        };
        let peek = |name| CheckRequest { peek: true, ..user(name) };
        assert_eq!(ask(vec![user("a"); 4]).await.iter().min(), Some(&5));
        assert_eq!(ask(vec![peek("a"), peek("b"), peek("a")]).await, [5, 9, 5]);
        assert_eq!(ask(vec![user("b"), peek("a")]).await, [8, 5]);
    });
}

#[test]
fn a_batch_is_answered_in_order() {
    let asking = asking(RULES);
    let ask = |checks: Vec<CheckRequest>| {
        let answer = asking.check_batch(&CheckBatchRequest { checks }.encode_to_vec())?;
        Ok(CheckBatchResponse::decode(answer.slice(frame::PREFIX..)).unwrap())
    };
    let allowed = |checks| ask(checks).unwrap().answers.iter().map(|it| it.allowed).collect();
    let batch = || vec![user("a"), user("b"), user("a"), user("a")];
    let first: Vec<bool> = allowed(batch());
    assert_eq!(first, [true, true, true, false]);
    let mut mixed = batch();
    mixed[1].peek = true;
    let second: Vec<bool> = allowed(mixed);
    assert_eq!(second, [false, true, false, false]);
    let third: Vec<bool> = allowed(vec![user("b"), user("b")]);
    assert_eq!(third, [true, false], "the look has spent nothing");
    assert_eq!(code(ask(vec![user("a"); 21])), Some(Code::ResourceExhausted));
    let mut wrong = vec![user("c"), user("c")];
    wrong[1].attributes.insert("usr".to_owned(), "a".to_owned());
    assert_eq!(code(ask(wrong)), Some(Code::InvalidArgument));
    assert_eq!(check(&asking, user("c")).remaining, Some(1), "nothing was decided");
}

#[test]
fn the_end_of_a_request_is_told_with_its_ticket() {
    let asking = asking(RULES);
    let export = || CheckRequest { path: "/export".to_owned(), ..Default::default() };
    let ticket = check(&asking, export()).ticket;
    let denied = check(&asking, export());
    assert_eq!((denied.allowed, denied.retry()), (false, Retry::OnReturn));
    let report = |ticket: &str| {
        let ended = Ended { ticket: ticket.to_owned(), status: 200, ..Default::default() };
        asking.report(ReportRequest { ended: vec![ended] }).unwrap().0.reported
    };
    assert_eq!([report(&ticket), report(&ticket), report("x")], [[true], [false], [false]]);
    assert!(check(&asking, export()).allowed);
}

#[test]
fn there_are_only_so_many_tickets() {
    let asking = asking("rules: [{ name: slots, key: [], concurrent: 9 }]");
    let held = [(); 2].map(|()| check(&asking, CheckRequest::default()).ticket);
    assert!(held.iter().all(|ticket| !ticket.is_empty()));
    assert_eq!(code(asking.check(CheckRequest::default())), Some(Code::ResourceExhausted));
}

#[test]
fn what_is_wrong_is_named() {
    let asking = asking(RULES);
    let refused = |asked| match asking.check(asked) {
        Err(Refusal::Call { code: Code::InvalidArgument, message }) => message,
        other => panic!("{other:?}"),
    };
    let mut wrong = user("a");
    wrong.attributes.insert("acount".to_owned(), "a".to_owned());
    assert!(refused(wrong).contains("did you mean `account`?"));
    assert!(
        refused(CheckRequest { ip: "192.0.2.7:80".to_owned(), ..user("a") })
            .contains("without a port")
    );
    assert!(refused(CheckRequest { cost: Some(u64::MAX), ..user("a") }).contains("cost"));
    let many = (0..300).map(|number| (format!("x-{number}"), String::new())).collect();
    assert!(refused(CheckRequest { headers: many, ..user("a") }).contains("256"));
}

fn read(message: &[u8]) -> Result<Asked<'_>, Refusal> {
    let mut asked = Asked::default();
    asked.read(message).map(|()| asked)
}

proptest! {
    /// What is read where it stands is what everybody reads.
    #[test]
    fn messages_are_read_as_prost_reads_them(
        texts in prop::array::uniform3("[a-z/]{0,9}"),
        attributes in prop::collection::btree_map("user|account|claims.[a-z]|x", ".{0,9}", 0..4),
        headers in prop::collection::btree_map("[a-z-]{0,5}", ".{0,200}", 0..3),
        ip in "192.0.2.7||2001:db8::1|nowhere",
        cost in prop::option::of(any::<u64>()),
        (peek, with_rules, id) in any::<(bool, bool, u64)>(),
    ) {
        let [method, path, host] = texts;
        let asked = CheckRequest { method, path, host, ip, attributes, headers, cost, peek, with_rules, id };
        let message = asked.encode_to_vec();
        prop_assert_eq!(read(&message), Asked::of(&asked));
    }

    /// Whatever the bytes are: nobody reads a message where prost reads none.
    #[test]
    fn what_is_no_message_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let read = read(&bytes);
        match CheckRequest::decode(&*bytes) {
            Err(_) => prop_assert!(read.is_err()),
            // A name that is there twice is found twice.
            Ok(asked) if read.is_ok() => prop_assert!(Asked::of(&asked).is_ok()),
            Ok(_) => {}
        }
    }

    #[test]
    fn answers_are_written_as_prost_writes_them(
        rule in "limit: [12]/h|limit: unlimited|concurrent: 1|limit: 9/s, algorithm: leaky_bucket, queue: 3",
        cost in 0..4_u64,
        times in 1..4,
        (with_rules, id) in any::<(bool, u64)>(),
    ) {
        let asking = asking(&format!("rules: [{{ name: {}, key: [], {rule} }}]", "r".repeat(60)));
        let asked = CheckRequest { cost: Some(cost), with_rules, id, ..Default::default() };
        for _ in 0..times {
            let asked = Asked::of(&asked).unwrap();
            let check = &asked.checks[0];
            let ruling = asking.service.peek(&asked.request(check, ""));
            let mut written = vec![7];
            wire::put_message(&mut written, 3, |to| told::write(&ruling, None, check, to));
            let told = told::answer(&ruling, None, check);
            let mut expected = vec![7];
            prost::encoding::message::encode(3, &told, &mut expected);
            prop_assert_eq!(written, expected);
            drop(asking.service.check(Name::Grpc, &asked.request(check, "")));
        }
    }
}
