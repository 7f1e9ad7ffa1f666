//! A small writer of MaxMind's format, so that tests have databases of their own making.
//!
//! A database is a tree of 24-bit records that is walked bit by bit along an address, sixteen
//! zero bytes, the records of data, and behind a marker a map that describes it all.

use ipnet::IpNet;

/// A value of the format, as far as tests need them.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(&'static str),
    U16(u16),
    U32(u32),
    U64(u64),
    Map(Vec<(&'static str, Self)>),
    List(Vec<Self>),
}

/// The bytes of a database with these records. IPv4 networks are found in both versions; networks
/// must not hold each other.
pub(crate) fn database(ip_version: u16, records: &[(&str, Value)]) -> Vec<u8> {
    let mut tree = vec![[Child::Nothing; 2]];
    let mut data = Vec::new();
    for (network, value) in records {
        let child = Child::Data(data.len());
        write(&mut data, value);
        insert(&mut tree, &bits(ip_version, network.parse().unwrap()), child);
    }
    let mut bytes = Vec::new();
    for child in tree.iter().flatten() {
        let number = match child {
            Child::Nothing => tree.len(),
            Child::Node(index) => *index,
            Child::Data(offset) => tree.len() + 16 + offset,
        };
        bytes.extend_from_slice(&u32::try_from(number).unwrap().to_be_bytes()[1..]);
    }
    bytes.extend_from_slice(&[0; 16]);
    bytes.extend_from_slice(&data);
    bytes.extend_from_slice(b"\xab\xcd\xefMaxMind.com");
    write(&mut bytes, &description(ip_version, tree.len()));
    bytes
}

#[derive(Clone, Copy)]
enum Child {
    Nothing,
    Node(usize),
    Data(usize),
}

/// The way to a network: in a tree of IPv6 addresses, IPv4 addresses have 96 zero bits before.
fn bits(ip_version: u16, network: IpNet) -> Vec<bool> {
    let (address, length, before) = match network {
        IpNet::V4(v4) => (u128::from(v4.network().to_bits()) << 96, v4.prefix_len(), 96),
        IpNet::V6(v6) => (v6.network().to_bits(), v6.prefix_len(), 0),
    };
    let before = if ip_version == 6 { before } else { 0 };
    let own = (0..length).map(|bit| address >> (127 - bit) & 1 == 1);
    std::iter::repeat_n(false, before).chain(own).collect()
}

fn insert(tree: &mut Vec<[Child; 2]>, bits: &[bool], child: Child) {
    let (last, way) = bits.split_last().unwrap();
    let mut node = 0;
    for bit in way {
        let side = usize::from(*bit);
        node = match tree[node][side] {
            Child::Node(next) => next,
            Child::Nothing => {
                let next = tree.len();
                tree.push([Child::Nothing; 2]);
                tree[node][side] = Child::Node(next);
                next
            }
            Child::Data(_) => panic!("a network in another"),
        };
    }
    tree[node][usize::from(*last)] = child;
}

fn description(ip_version: u16, nodes: usize) -> Value {
    Value::Map(vec![
        ("binary_format_major_version", Value::U16(2)),
        ("binary_format_minor_version", Value::U16(0)),
        ("build_epoch", Value::U64(1_700_000_000)),
        ("database_type", Value::Text("Tollgate-Test")),
        ("description", Value::Map(vec![("en", Value::Text("for tests"))])),
        ("ip_version", Value::U16(ip_version)),
        ("languages", Value::List(vec![Value::Text("en")])),
        ("node_count", Value::U32(u32::try_from(nodes).unwrap())),
        ("record_size", Value::U16(24)),
    ])
}

fn write(bytes: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Text(text) => write_text(bytes, text),
        Value::U16(number) => write_number(bytes, 5, &number.to_be_bytes()),
        Value::U32(number) => write_number(bytes, 6, &number.to_be_bytes()),
        Value::U64(number) => write_number(bytes, 9, &number.to_be_bytes()),
        Value::Map(fields) => {
            write_head(bytes, 7, fields.len());
            for (name, value) in fields {
                write_text(bytes, name);
                write(bytes, value);
            }
        }
        Value::List(values) => {
            write_head(bytes, 11, values.len());
            for value in values {
                write(bytes, value);
            }
        }
    }
}

fn write_text(bytes: &mut Vec<u8>, text: &str) {
    write_head(bytes, 2, text.len());
    bytes.extend_from_slice(text.as_bytes());
}

/// Without the zero bytes in front.
fn write_number(bytes: &mut Vec<u8>, kind: u8, number: &[u8]) {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    write_head(bytes, kind, number.len() - zeros);
    bytes.extend_from_slice(&number[zeros..]);
}

/// Three bits of the kind and five of the size; kinds over 7 have a byte of their own.
fn write_head(bytes: &mut Vec<u8>, kind: u8, size: usize) {
    // From 29 on the size is 29 and a byte of the rest.
    let short = u8::try_from(size.min(29)).unwrap();
    match kind {
        0..=7 => bytes.push(kind << 5 | short),
        _ => bytes.extend_from_slice(&[short, kind - 7]),
    }
    if size >= 29 {
        bytes.push(u8::try_from(size - 29).unwrap());
    }
}
