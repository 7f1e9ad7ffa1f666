use proptest::prelude::*;

use super::*;

const BOUNDS: Bounds = Bounds { arguments: 20, bytes: 1000, unauthenticated: false };

/// A command as clients send it.
fn encode(command: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
    for argument in command {
        bytes.extend(format!("${}\r\n", argument.len()).bytes());
        bytes.extend(argument);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// All commands in these bytes, what is left behind them, and what is wrong with that.
fn all(mut bytes: &[u8]) -> (Vec<Vec<Vec<u8>>>, usize, Option<ProtocolError>) {
    let mut commands = Vec::new();
    loop {
        let mut arguments = Arguments::new();
        let length = match decode(bytes, BOUNDS, &mut arguments) {
            Ok(Decoded::Command { length }) => {
                commands.push(arguments.iter().map(|argument| argument.to_vec()).collect());
                length
            }
            Ok(Decoded::Line { line, length }) => {
                match words(line, BOUNDS) {
                    Ok(words) => commands.push(words),
                    Err(error) => return (commands, bytes.len(), Some(error)),
                }
                length
            }
            Ok(Decoded::Nothing { length }) => length,
            Ok(Decoded::Incomplete { needs }) => {
                assert!(needs > bytes.len(), "{needs} are there");
                return (commands, bytes.len(), None);
            }
            Err(error) => return (commands, bytes.len(), Some(error)),
        };
        assert!((1..=bytes.len()).contains(&length));
        bytes = &bytes[length..];
    }
}

fn refused(bytes: &[u8]) -> Option<ProtocolError> {
    all(bytes).2
}

fn typed(line: &str) -> Vec<String> {
    let (commands, left, error) = all(line.as_bytes());
    assert_eq!((left, error), (0, None), "{line}");
    let words = commands.into_iter().flatten();
    words.map(|word| String::from_utf8_lossy(&word).into_owned()).collect()
}

#[test]
fn lines_are_split_at_blanks_and_quotes_keep_them() {
    assert_eq!(typed("PING\r\n"), ["PING"]);
    assert_eq!(typed("  set  a\tb \n"), ["set", "a", "b"]);
    assert_eq!(typed("\r\n\n  \r\n"), [""; 0]);
    assert_eq!(typed("echo \"a b\" 'c d'\r\n"), ["echo", "a b", "c d"]);
    assert_eq!(typed("\"\\x41\\n\\\"\\q\" 'a\\'b\\n'\n"), ["A\n\"q", "a'b\\n"]);
    assert_eq!(typed("a\"b\"\n"), ["ab"]);
    for open in ["echo \"a\n", "echo 'a\n", "echo \"a\"b\n", "\"\\\n"] {
        assert_eq!(refused(open.as_bytes()), Some(ProtocolError::OpenQuote), "{open}");
    }
}

#[test]
fn arrays_are_arguments() {
    let (commands, left, error) =
        all(b"*2\r\n$4\r\nECHO\r\n$2\r\n\r\n\r\n*1\r\n$0\r\n\r\n*0\r\n*-1\r\n*1\r\n$4");
    assert_eq!(commands, [vec![b"ECHO".to_vec(), b"\r\n".to_vec()], vec![Vec::new()]]);
    assert_eq!((left, error), (6, None));
}

#[test]
fn what_is_no_command_is_refused() {
    use ProtocolError::*;
    for (bytes, error) in [
        (&b"*x\r\n"[..], ArgumentCount),
        (b"*1 \r\n", ArgumentCount),
        (b"*+1\r\n", ArgumentCount),
        (b"*01\r\n", ArgumentCount),
        (b"*21\r\n", ArgumentCount),
        (b"*9223372036854775808\r\n", ArgumentCount),
        (b"*1\rx", ArgumentCount),
        (b"*11111111111111111111111111111111", ArgumentCountTooLong),
        (b"*1\r\n:1\r\n", NoArgument(b':')),
        (b"*1\r\n\r\n", NoArgument(b'\r')),
        (b"*1\r\n$-1\r\n", ArgumentLength),
        (b"*1\r\n$1001\r\n", ArgumentLength),
        (b"*1\r\n$99999999999999999999\r\n", ArgumentLength),
        (b"*2\r\n$1\r\na\r\n$1000\r\n", ArgumentLength),
        (b"*1\r\n$11111111111111111111111111111111", ArgumentLengthTooLong),
        (b"*1\r\n$1\r\nab\r\n", NoLineEnd),
        (b"*1\r\n$1\r\na\n\n", NoLineEnd),
        (&[b'a'; 1000], LineTooLong),
    ] {
        assert_eq!(refused(bytes), Some(error), "{}", bytes.escape_ascii());
    }
    let unauthenticated = Bounds { arguments: 1, bytes: 1, unauthenticated: true };
    let refused = |bytes| decode(bytes, unauthenticated, &mut Arguments::new()).unwrap_err();
    assert_eq!(refused(b"*2\r\n"), UnauthenticatedArgumentCount);
    assert_eq!(refused(b"*1\r\n$2\r\n"), UnauthenticatedArgumentLength);
}

#[test]
fn numbers_are_read_as_redis_reads_them() {
    for (text, number) in [
        ("0", Some(0)),
        ("-1", Some(-1)),
        ("9223372036854775807", Some(i64::MAX)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
        ("-0", None),
        ("00", None),
        ("+1", None),
        ("1 ", None),
        ("-", None),
        ("", None),
        ("1.0", None),
        ("99999999999999999999", None),
    ] {
        assert_eq!(integer(text.as_bytes()), number, "{text}");
    }
}

fn command() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..20)
}

/// Bytes, some of which look like commands.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        command().prop_map(|command| encode(&command)),
        "[*$:0-9 a\r\n\"'\\\\x-]{0,12}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(commands in prop::collection::vec(command(), 0..5)) {
        let bytes: Vec<u8> = commands.iter().flat_map(|command| encode(command)).collect();
        prop_assert_eq!(all(&bytes), (commands, 0, None));
    }

    #[test]
    fn it_does_not_matter_where_bytes_are_split(bytes in bytes(), at in any::<prop::sample::Index>()) {
        let (whole, left, error) = all(&bytes);
        let (before, _) = bytes.split_at(at.index(bytes.len() + 1));
        let (mut commands, rest, early) = all(before);
        match early {
            // Nothing that comes later makes it good.
            Some(_) => prop_assert_eq!((commands, early), (whole, error)),
            None => {
                let (more, rest, error_then) = all(&bytes[before.len() - rest..]);
                commands.extend(more);
                prop_assert_eq!((commands, rest, error_then), (whole, left, error));
            }
        }
    }

    #[test]
    fn with_fewer_bytes_than_it_needs_nothing_is_known(bytes in bytes()) {
        if let Ok(Decoded::Incomplete { needs }) = decode(&bytes, BOUNDS, &mut Arguments::new()) {
            let mut padded = bytes.clone();
            padded.resize(needs - 1, b'\n');
            let mut arguments = Arguments::new();
            let decoded = decode(&padded, BOUNDS, &mut arguments);
            prop_assert_eq!(decoded, Ok(Decoded::Incomplete { needs }), "{}", padded.escape_ascii());
        }
    }
}
