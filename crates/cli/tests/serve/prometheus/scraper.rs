//! A real Prometheus that reads the metrics of a server.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Process, Server, free_port, tool, until};

/// Prometheus, with one server to look at.
pub(super) struct Scraper {
    port: u16,
    // In this order: it ends before its folder goes.
    _process: Process,
    _folder: TempDir,
}

impl Scraper {
    /// Starts it, as a job called `tollgate`.
    pub(super) fn start(server: &Server) -> Self {
        let folder = TempDir::new().unwrap();
        let config = format!(
            "global: {{ scrape_interval: 250ms, scrape_timeout: 250ms }}\n\
             scrape_configs:\n\
             - job_name: tollgate\n\
             \x20 static_configs: [{{ targets: ['{}'] }}]\n",
            server.address("status"),
        );
        let file = folder.path().join("prometheus.yaml");
        std::fs::write(&file, config).unwrap();
        let port = free_port();
        let mut process = Process::start(tool("prometheus").current_dir(&folder).args([
            &format!("--config.file={}", file.display()),
            &format!("--storage.tsdb.path={}", folder.path().join("data").display()),
            &format!("--web.listen-address=127.0.0.1:{port}"),
        ]));
        process.wait_for_port(port);
        let scraper = Self { port, _process: process, _folder: folder };
        until("Prometheus is ready", || (scraper.get("/-/ready").0 == 200).then_some(()));
        scraper
    }

    /// What a query gives: series, each with its labels.
    pub(super) fn query(&self, query: &str) -> Vec<Value> {
        let mut target = form_urlencoded::Serializer::new("/api/v1/query?".to_owned());
        let target = target.append_pair("query", query).finish().replacen("?&", "?", 1);
        let (status, body) = self.get(&target);
        let answer: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{body}"));
        assert_eq!((status, answer["status"].as_str()), (200, Some("success")), "{query}: {body}");
        answer["data"]["result"].as_array().unwrap().clone()
    }

    /// In a version of HTTP whose answers come as they are.
    fn get(&self, target: &str) -> (u16, String) {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        write!(stream, "GET {target} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }
}
