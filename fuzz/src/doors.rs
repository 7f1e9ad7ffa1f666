//! What is fuzzed of the doors: each function takes bytes as a client could send them, and panics
//! if something is not as it should be. The test command runs them as well.

use tollgate_doors::fuzzing::{HttpClient, RespClient};

/// Commands are answered, each with one answer, or the connection ends; where the bytes are split
/// does not matter.
pub fn resp(bytes: &[u8]) {
    for password in [None, Some("open sesame")] {
        let whole = kinds(&answers(&[bytes], password));
        let (one, other) = bytes.split_at(bytes.len() / 2);
        assert_eq!(whole, kinds(&answers(&[one, other], password)));
        let singles: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(whole, kinds(&answers(&singles, password)));
    }
}

/// Bodies are answered, or refused with a reason that is fit to be read.
pub fn check_json(bytes: &[u8]) {
    let client = HttpClient::new(RULES).expect("good rules");
    for path in ["/v1/peek", "/v1/check", "/v1/report"] {
        let (status, answer) = client.post(path, bytes).expect("there is such a path");
        let answer = std::str::from_utf8(&answer).expect("an answer is text");
        assert!(answer.starts_with('{') && answer.ends_with('}'), "{answer}");
        assert!(!answer.contains(|c: char| c.is_control()), "{answer:?}");
        match status {
            200 => {}
            // It has seen nothing of the kind before.
            404 => assert_eq!(path, "/v1/report"),
            429 => assert!(answer.contains("\"violated-policies\":[\""), "{answer}"),
            400 | 422 | 503 => {
                assert!(answer.contains("\"detail\":\""), "{answer}");
                assert!(answer.len() < 4000, "{} bytes", answer.len());
            }
            other => panic!("{other} is no answer: {answer}"),
        }
    }
}

fn answers(pieces: &[&[u8]], password: Option<&str>) -> Vec<u8> {
    let mut client = RespClient::new(RULES, password).expect("good rules");
    pieces.iter().map_while(|piece| client.send(piece)).flatten().collect()
}

/// What kind each answer is of: a number, an error.
fn kinds(mut bytes: &[u8]) -> String {
    let mut kinds = String::new();
    while let Some(kind) = bytes.first() {
        kinds.push(char::from(*kind));
        bytes = behind(bytes);
    }
    kinds
}

/// What is behind the first answer.
fn behind(bytes: &[u8]) -> &[u8] {
    let end = bytes.windows(2).position(|two| two == b"\r\n").expect("a line ends");
    let (line, mut rest) = (&bytes[1..end], &bytes[end + 2..]);
    assert!(!line.contains(&b'\r') && !line.contains(&b'\n'), "{}", line.escape_ascii());
    let number = || {
        let text = std::str::from_utf8(line).expect("a number is text");
        text.parse::<i64>().expect("a number")
    };
    match bytes[0] {
        b'+' | b'-' => {}
        b':' => _ = number(),
        b'_' => assert!(line.is_empty()),
        b'$' if number() == -1 => {}
        b'$' | b'=' => {
            let length = usize::try_from(number()).expect("a length");
            assert_eq!(&rest[length..length + 2], b"\r\n");
            rest = &rest[length + 2..];
        }
        kind @ (b'*' | b'~' | b'%') => {
            let times = number() * if kind == b'%' { 2 } else { 1 };
            rest = (0..times).fold(rest, |rest, _| behind(rest));
        }
        other => panic!("no answer begins with {}", other.escape_ascii()),
    }
    rest
}

const RULES: &str = "
rules:
  - { name: a, key: [user], limit: 5/s }
  - { name: b, match: { path: /export }, key: [user], concurrent: 2 }
  - { name: c, match: { method: POST }, key: [ip], limit: 3/h, count_if: 'response.status == 401' }
";
