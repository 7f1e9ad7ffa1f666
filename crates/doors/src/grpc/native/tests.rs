use tollgate_proto::tollgate::v1::{Ended, Mode, Retry};

use super::*;
use crate::grpc::tests::asking;

fn user(name: &str) -> CheckRequest {
    CheckRequest { attributes: [("user".to_owned(), name.to_owned())].into(), ..Default::default() }
}

fn check(asking: &Asking, asked: CheckRequest) -> CheckResponse {
    asking.check(asked).unwrap().0
}

fn code<T>(told: Told<T>) -> Option<Code> {
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
fn a_batch_is_answered_in_order() {
    let asking = asking(RULES);
    let ask = |checks: Vec<CheckRequest>| asking.check_batch(CheckBatchRequest { checks });
    let allowed = |checks| ask(checks).unwrap().0.answers.iter().map(|it| it.allowed).collect();
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
