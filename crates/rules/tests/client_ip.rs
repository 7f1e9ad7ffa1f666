//! Whose word is believed about the client's address: examples, and properties of what clients
//! can make up.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed, and says where"
)]

use std::net::IpAddr;

use proptest::prelude::*;
use tollgate_rules::{ClientHeader, ClientIp, Networks, Request};

const PROXY: &str = "10.0.0.1";
const CLIENT: &str = "192.0.2.7";

#[test]
fn the_first_untrusted_hop_is_the_client() {
    xff(&["192.0.2.7"], CLIENT);
    xff(&["1.1.1.1, 192.0.2.7, 10.0.0.3, 10.0.0.2"], CLIENT);
    xff(&["192.0.2.7:4711,10.0.0.2:80"], CLIENT);
    xff(&["[2001:db8::1]:80"], "2001:db8::1");
}

#[test]
fn several_lines_are_one_list() {
    xff(&["1.1.1.1", "192.0.2.7, 10.0.0.3", "10.0.0.2"], CLIENT);
    forwarded(&["for=1.1.1.1", "for=192.0.2.7;proto=https, For=\"10.0.0.3:80\""], CLIENT);
}

#[test]
fn the_farthest_is_the_client_if_all_are_trusted() {
    xff(&["10.0.0.9, 10.0.0.2"], "10.0.0.9");
    xff(&[], PROXY);
}

#[test]
fn the_walk_ends_before_what_is_no_address() {
    for garbage in ["unknown", "_hidden", "", " ", "x", "10.0.0", "192.0.2.7 10.0.0.3", "\u{e9}"] {
        xff(&[&format!("1.1.1.1, {garbage}, 10.0.0.2")], "10.0.0.2");
        xff(&[&format!("1.1.1.1, {garbage}")], PROXY);
    }
    forwarded(&["for=1.1.1.1, for=unknown, for=10.0.0.2"], "10.0.0.2");
    forwarded(&["for=1.1.1.1, proto=https"], PROXY);
}

#[test]
fn an_open_quotation_mark_hides_nobody() {
    forwarded(&["for=\"1.1.1.1, for=192.0.2.7"], CLIENT);
    forwarded(&["for=\"", "for=192.0.2.7"], CLIENT);
    forwarded(&["for=\"\\, for=\"192.0.2.7:80\""], CLIENT);
}

#[test]
fn mapped_addresses_are_ipv4_addresses() {
    xff(&["192.0.2.7, ::ffff:10.0.0.2"], CLIENT);
    xff(&["::ffff:192.0.2.7"], CLIENT);
    let request = Request::new("GET", "/").peer(ip("::ffff:198.51.100.1"));
    assert_eq!(client_ip(ClientHeader::XForwardedFor).of(&request), Some(ip("198.51.100.1")));
    let headers = [("x-forwarded-for", CLIENT)];
    let request = Request::new("GET", "/").peer(ip("::ffff:10.0.0.1")).headers(&headers);
    assert_eq!(client_ip(ClientHeader::XForwardedFor).of(&request), Some(ip(CLIENT)));
}

#[test]
fn of_a_single_address_the_last_line_counts() {
    let header: ClientHeader = "X-Real-IP".parse().unwrap();
    told(&header, &[" 192.0.2.7 "], CLIENT);
    told(&header, &["1.1.1.1", "192.0.2.7"], CLIENT);
    told(&header, &["10.0.0.9"], "10.0.0.9");
    told(&header, &["1.1.1.1, 192.0.2.7"], PROXY);
    told(&header, &["1.1.1.1", "unknown"], PROXY);
    told(&header, &[], PROXY);
}

#[test]
fn no_more_than_64_hops_are_looked_at() {
    let chain = |trusted: usize| format!("192.0.2.7{}", ", 10.0.0.2".repeat(trusted));
    xff(&[&chain(ClientIp::MAX_HOPS - 1)], CLIENT);
    xff(&[&chain(ClientIp::MAX_HOPS)], "10.0.0.2");
    xff(&[&chain(100_000)], "10.0.0.2");
}

#[test]
fn other_headers_are_not_believed() {
    let headers = [("x-real-ip", "1.1.1.1"), ("forwarded", "for=1.1.1.1")];
    let request = Request::new("GET", "/").peer(ip(PROXY)).headers(&headers);
    assert_eq!(client_ip(ClientHeader::XForwardedFor).of(&request), Some(ip(PROXY)));
}

#[test]
fn a_request_without_a_peer_has_no_client() {
    let headers = [("x-forwarded-for", CLIENT)];
    let request = Request::new("GET", "/").headers(&headers);
    assert_eq!(client_ip(ClientHeader::XForwardedFor).of(&request), None);
}

#[test]
fn prefixes_of_any_length_are_defined() {
    let (v4, v6) = (ip("255.255.255.255"), ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
    assert_eq!(ClientIp::prefix(v4, 0), ip("0.0.0.0"));
    assert_eq!(ClientIp::prefix(v4, 32), v4);
    assert_eq!(ClientIp::prefix(v4, 255), v4);
    assert_eq!(ClientIp::prefix(v6, 0), ip("::"));
    assert_eq!(ClientIp::prefix(v6, 32), ip("ffff:ffff:ffff:ffff::"));
    assert_eq!(ClientIp::prefix(v6, 33), ip("ffff:ffff:8000::"));
    assert_eq!(ClientIp::prefix(v6, 255), v6);
    assert_eq!(ClientIp::prefix(ip("::ffff:192.0.2.7"), 24), ip("192.0.2.0"));
}

#[test]
fn headers_can_be_read_back() {
    for text in ["x-forwarded-for", "forwarded", "x-real-ip"] {
        assert_eq!(text.parse::<ClientHeader>().unwrap().to_string(), text);
    }
}

proptest! {
    #[test]
    fn an_untrusted_peer_is_the_client_whatever_it_says(
        header in header(), lines in prop::collection::vec(made_up(), 0..4),
    ) {
        let client = asked(&header, "198.51.100.1", &lines);
        prop_assert_eq!(client, Some(ip("198.51.100.1")));
    }

    #[test]
    fn what_the_client_makes_up_changes_nothing(
        trusted in 0..5_usize, made_up in made_up(), own_line: bool, forwarded: bool,
    ) {
        let (header, mut chain) = match forwarded {
            true => (ClientHeader::Forwarded, "for=\"192.0.2.7:80\";host=\"a,b\"".to_owned()),
            false => (ClientHeader::XForwardedFor, CLIENT.to_owned()),
        };
        let hop = if forwarded { ", for=10.0.0.2;by=\"[::1]:80\"" } else { ", 10.0.0.2" };
        chain.push_str(&hop.repeat(trusted));
        let lines = match own_line {
            true => vec![made_up, chain],
            false => vec![format!("{made_up}, {chain}")],
        };
        prop_assert_eq!(asked(&header, PROXY, &lines), Some(ip(CLIENT)), "{:?}", lines);
    }

    #[test]
    fn nothing_that_is_sent_leaves_a_request_without_a_client(
        header in header(), lines in prop::collection::vec(made_up(), 0..4),
    ) {
        prop_assert!(asked(&header, PROXY, &lines).is_some());
    }

    #[test]
    fn a_prefix_of_a_prefix_is_the_prefix(ip: IpAddr, bits: u8) {
        let prefix = ClientIp::prefix(ip, bits);
        prop_assert_eq!(ClientIp::prefix(prefix, bits), prefix);
        let client_ip = ClientIp::default();
        prop_assert_eq!(client_ip.counted(client_ip.counted(ip)), client_ip.counted(ip));
    }
}

fn header() -> impl Strategy<Value = ClientHeader> {
    let names = ["x-forwarded-for", "forwarded", "x-real-ip"];
    prop::sample::select(names.to_vec()).prop_map(|name| name.parse().unwrap())
}

/// What a client may send: anything, and things that look right.
fn made_up() -> impl Strategy<Value = String> {
    let pieces = [
        "for=",
        "FOR=",
        "\"",
        "\\",
        ",",
        ";",
        " ",
        "[",
        "]",
        ":",
        ":80",
        "1.1.1.1",
        "10.0.0.2",
        "2001:db8::1",
        "::ffff:10.0.0.2",
        "unknown",
        "_hidden",
        "proto=https",
        "\u{e9}",
        "=",
    ];
    let pieces = prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..12);
    let pieces = pieces.prop_map(|pieces| pieces.concat());
    prop_oneof![3 => pieces, 1 => any::<String>()]
}

#[track_caller]
fn xff(lines: &[&str], client: &str) {
    told(&ClientHeader::XForwardedFor, lines, client);
}

#[track_caller]
fn forwarded(lines: &[&str], client: &str) {
    told(&ClientHeader::Forwarded, lines, client);
}

/// What our proxy is told, and who the client is then.
#[track_caller]
fn told(header: &ClientHeader, lines: &[&str], client: &str) {
    let lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
    assert_eq!(asked(header, PROXY, &lines), Some(ip(client)), "{lines:?}");
}

fn asked(header: &ClientHeader, peer: &str, lines: &[String]) -> Option<IpAddr> {
    let headers: Vec<_> = lines.iter().map(|line| (header.name(), line.as_str())).collect();
    let request = Request::new("GET", "/").peer(ip(peer)).headers(&headers);
    client_ip(header.clone()).of(&request)
}

fn client_ip(header: ClientHeader) -> ClientIp {
    let proxies = Networks::try_new([Networks::network("10.0.0.0/8").unwrap()]).unwrap();
    ClientIp::default().with_trusted_proxies(proxies).with_header(header)
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}
