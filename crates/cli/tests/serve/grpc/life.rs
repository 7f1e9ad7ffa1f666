//! The end of a server, for those who are in streams.

use tollgate_client::{Check, Client, Error};

use super::RULES;
use crate::support::{Server, until};

#[test]
fn a_stream_ends_with_the_server_and_has_its_answers() {
    let mut server = Server::start(RULES);
    let address = format!("http://{}", server.address("grpc"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::new(&address).unwrap();
        let mut checks = client.checks(4).await.unwrap();
        checks.ask(Check::new("GET", "/")).await.unwrap();
        assert!(checks.next().await.unwrap().unwrap().allowed);
        server.process.signal("TERM");
        match checks.next().await {
            Err(Error::Call(status)) => assert_eq!(status.code() as i32, 14, "{status}"),
            other => panic!("{other:?}"),
        }
    });
    assert!(server.process.wait().success());
}

#[test]
fn an_open_stream_is_no_silence() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("tollgate.toml");
    std::fs::write(&file, "[limits]\nidle = \"200ms\"\n").unwrap();
    let server = Server::with(RULES, &["--config", &file.display().to_string()]);
    let address = format!("http://{}", server.address("grpc"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::new(&address).unwrap();
        let mut checks = client.checks(4).await.unwrap();
        // Another connection that says nothing is closed by then.
        let idle = std::net::TcpStream::connect(server.address("grpc")).unwrap();
        idle.set_nonblocking(true).unwrap();
        until("the silent connection is closed", || {
            let read = std::io::Read::read(&mut &idle, &mut [0; 1]);
            matches!(read, Ok(0)).then_some(())
        });
        checks.ask(Check::new("GET", "/")).await.unwrap();
        assert!(checks.next().await.unwrap().unwrap().allowed);
    });
}
