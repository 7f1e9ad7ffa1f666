//! Our own client.

use tollgate_client::{Check, Client, Ended, Error, Retry};

use super::RULES;
use crate::support::Server;

/// Runs with a client of a server.
fn with<F: Future<Output = ()>>(test: impl FnOnce(Client) -> F) {
    let server = Server::start(RULES);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        test(Client::new(&format!("http://{}", server.address("grpc"))).unwrap()).await;
    });
}

fn user(name: &str) -> Check {
    Check::new("GET", "/v1/items").attribute("user", name)
}

#[test]
fn asks_one_by_one_and_many_at_once() {
    with(async |client| {
        let first = client.check(user("a")).await.unwrap();
        assert_eq!((first.allowed, &*first.rule, first.remaining), (true, "per-user", Some(1)));
        assert!(client.check(user("a").peek()).await.unwrap().allowed);
        let answers = client.check_all(["a", "a", "b"].map(user)).await.unwrap();
        assert_eq!(answers.iter().map(|it| it.allowed).collect::<Vec<_>>(), [true, false, true]);
        assert!(matches!(answers[1].retry, Some(Retry::After(_))));
        assert!(matches!(client.check(user("a").attribute("x", "y")).await, Err(Error::Call(_))));
    });
}

#[test]
fn asks_in_a_stream() {
    with(async |client| {
        let mut checks = client.checks(4).await.unwrap();
        for round in 0..100 {
            checks.ask(user(&format!("u{}", round / 5)).id(round)).await.unwrap();
            let answer = checks.next().await.unwrap().unwrap();
            assert_eq!((answer.id, answer.allowed), (round, round % 5 < 2));
        }
        checks.finish();
        assert_eq!(checks.next().await.unwrap(), None);
    });
}

#[test]
fn says_how_requests_ended() {
    with(async |client| {
        let export = || Check::new("GET", "/export");
        let ticket = client.check(export()).await.unwrap().ticket.unwrap();
        assert_eq!(client.check(export()).await.unwrap().retry, Some(Retry::OnReturn));
        let ended = [Ended::new(ticket).status(200), Ended::new("none")];
        assert_eq!(client.report(ended).await.unwrap(), [true, false]);
        assert!(client.check(export()).await.unwrap().allowed);
    });
}
