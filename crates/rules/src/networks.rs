//! Lists of networks, and whether an address lies in one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};

/// A list of networks. To look an address up takes a binary search and no memory, so lists of a
/// hundred thousand networks are as good as short ones.
///
/// An IPv4 address that is written as an IPv6 one (`::ffff:192.0.2.1`) is the IPv4 address, here
/// and in networks. `::/0` holds all IPv6 addresses and no IPv4 address.
///
/// ```
/// use tollgate_rules::Networks;
/// let networks = ["10.0.0.0/8", "2001:db8::/32"].map(|text| Networks::network(text).unwrap());
/// let networks = Networks::try_new(networks)?;
/// assert!(networks.contains("10.1.2.3".parse().unwrap()));
/// assert!(networks.contains("::ffff:10.1.2.3".parse().unwrap()));
/// assert!(!networks.contains("192.0.2.1".parse().unwrap()));
/// # Ok::<(), tollgate_rules::NetworksError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    v4: Box<[Range<u32>]>,
    v6: Box<[Range<u128>]>,
}

/// The first and the last address of a network, as numbers.
type Range<T> = (T, T);

/// Why there is no list of these networks. The list is at fault, and nothing was changed.
///
/// ```
/// use tollgate_rules::Networks;
/// let error = Networks::network("10.0.0.1/8").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "`10.0.0.1/8` names an address inside a network: write `10.0.0.0/8` or `10.0.0.1`"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworksError {
    /// The text is neither an address nor a network.
    #[error("`{text}` is no network: write an address such as `192.0.2.1`, or `192.0.2.0/24`")]
    Malformed {
        /// What was given.
        text: String,
    },
    /// Bits are set behind the prefix, so it is not clear which of the two was meant.
    #[error(
        "`{text}` names an address inside a network: write `{network}` or `{}`",
        .text.split('/').next().unwrap_or_default()
    )]
    HostBits {
        /// What was given.
        text: String,
        /// The network that the address lies in.
        network: IpNet,
    },
    /// There are more than [`Networks::MAX`].
    #[error("there are more than {max} networks: join neighbours to larger networks")]
    TooMany {
        /// How many there may be.
        max: usize,
    },
}

impl Networks {
    /// The most networks in one list: 3.2 MB of IPv6 networks.
    pub const MAX: usize = 100_000;

    /// A list of these networks, in any order. They may overlap.
    ///
    /// ```
    /// use tollgate_rules::{Networks, NetworksError};
    /// assert!(Networks::try_new([])?.is_empty());
    /// let one = Networks::network("192.0.2.1")?;
    /// let error = Networks::try_new(std::iter::repeat(one)).unwrap_err();
    /// assert_eq!(error, NetworksError::TooMany { max: Networks::MAX });
    /// # Ok::<(), NetworksError>(())
    /// ```
    pub fn try_new(networks: impl IntoIterator<Item = IpNet>) -> Result<Self, NetworksError> {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for network in networks {
            if v4.len() + v6.len() == Self::MAX {
                return Err(NetworksError::TooMany { max: Self::MAX });
            }
            match canonical(network) {
                IpNet::V4(net) => v4.push((net.network().into(), net.broadcast().into())),
                IpNet::V6(net) => v6.push((net.network().into(), net.broadcast().into())),
            }
        }
        Ok(Self { v4: outermost(v4), v6: outermost(v6) })
    }

    /// Reads one network: an address, or an address and how many of its bits count.
    ///
    /// ```
    /// use tollgate_rules::Networks;
    /// assert_eq!(Networks::network("192.0.2.1")?, Networks::network("192.0.2.1/32")?);
    /// assert!(Networks::network("example.com").is_err());
    /// # Ok::<(), tollgate_rules::NetworksError>(())
    /// ```
    pub fn network(text: &str) -> Result<IpNet, NetworksError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(address.into());
        }
        let malformed = |_| NetworksError::Malformed { text: text.to_owned() };
        let network: IpNet = text.parse().map_err(malformed)?;
        match network.trunc() {
            trunc if trunc == network => Ok(network),
            network => Err(NetworksError::HostBits { text: text.to_owned(), network }),
        }
    }

    /// Whether the address lies in one of them.
    ///
    /// ```
    /// use tollgate_rules::Networks;
    /// assert!(!Networks::default().contains("192.0.2.1".parse().unwrap()));
    /// ```
    pub fn contains(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => holds(&self.v4, address.into()),
            IpAddr::V6(address) => holds(&self.v6, address.into()),
        }
    }

    /// Whether there are none.
    ///
    /// ```
    /// assert!(tollgate_rules::Networks::default().is_empty());
    /// ```
    pub const fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }
}

impl Networks {
    /// The first and the last address of each, in order.
    pub(crate) fn texts(&self) -> Vec<String> {
        let v4 = self.v4.iter().map(|(first, last)| {
            format!("{}-{}", Ipv4Addr::from_bits(*first), Ipv4Addr::from_bits(*last))
        });
        let v6 = self.v6.iter().map(|(first, last)| {
            format!("{}-{}", Ipv6Addr::from_bits(*first), Ipv6Addr::from_bits(*last))
        });
        v4.chain(v6).collect()
    }

    /// Whether all addresses of `other` are in one of these.
    pub(crate) const fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    pub(crate) fn covers(&self, other: &Self) -> bool {
        let v4 = other.v4.iter().all(|range| within(&self.v4, range));
        v4 && other.v6.iter().all(|range| within(&self.v6, range))
    }
}

/// Whether one of the ranges holds this one. Ranges that only hold it together do not count.
fn within<T: Ord + Copy>(ranges: &[Range<T>], (first, last): &Range<T>) -> bool {
    // They are sorted, and none is within another: of those that begin before, the last ends last.
    let before = ranges.partition_point(|(low, _)| low <= first);
    before.checked_sub(1).is_some_and(|at| *last <= ranges[at].1)
}

/// The IPv4 network for one that is written as an IPv6 network.
fn canonical(network: IpNet) -> IpNet {
    let IpNet::V6(v6) = network else { return network };
    let bits = v6.prefix_len().checked_sub(96);
    let v4 = v6.network().to_ipv4_mapped().zip(bits);
    let v4 = v4.and_then(|(address, bits)| Ipv4Net::new(address, bits).ok());
    v4.map_or(network, IpNet::V4)
}

/// Sorted, without those that lie in another. Networks never overlap in part, so what is left
/// has no address twice.
fn outermost<T: Ord + Copy>(mut ranges: Vec<Range<T>>) -> Box<[Range<T>]> {
    ranges.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    ranges.dedup_by(|next, kept| next.1 <= kept.1);
    ranges.into_boxed_slice()
}

fn holds<T: Ord + Copy>(ranges: &[Range<T>], address: T) -> bool {
    let after = ranges.partition_point(|range| range.0 <= address);
    after.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|range| address <= range.1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn list(texts: &[&str]) -> Networks {
        Networks::try_new(texts.iter().map(|text| Networks::network(text).unwrap())).unwrap()
    }

    #[test]
    fn a_network_ends_at_its_last_address() {
        let list = list(&["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"]);
        for inside in ["10.0.0.0", "10.255.255.255", "192.0.2.7", "2001:db8:ffff::"] {
            assert!(list.contains(ip(inside)), "{inside}");
        }
        for outside in ["9.255.255.255", "11.0.0.0", "192.0.2.6", "192.0.2.8", "2001:db9::", "::"] {
            assert!(!list.contains(ip(outside)), "{outside}");
        }
    }

    #[test]
    fn everything_of_one_family_is_nothing_of_the_other() {
        assert!(list(&["0.0.0.0/0"]).contains(ip("255.255.255.255")));
        assert!(!list(&["0.0.0.0/0"]).contains(ip("2001:db8::1")));
        assert!(list(&["::/0"]).contains(ip("2001:db8::1")));
        assert!(!list(&["::/0"]).contains(ip("::ffff:192.0.2.1")));
    }

    #[test]
    fn a_mapped_network_is_the_network_it_maps() {
        assert_eq!(list(&["::ffff:10.0.0.0/104"]), list(&["10.0.0.0/8"]));
        assert_eq!(list(&["::ffff:10.0.0.1"]), list(&["10.0.0.1"]));
    }

    #[test]
    fn networks_in_others_take_no_room() {
        assert_eq!(list(&["10.1.0.0/16", "10.0.0.0/8", "10.0.0.0/8"]), list(&["10.0.0.0/8"]));
    }

    fn networks() -> impl Strategy<Value = Vec<IpNet>> {
        // Few distinct bits, so that networks hold each other and addresses hit.
        let v4 = (any::<u8>(), 0..=32_u8).prop_map(|(byte, bits)| {
            IpNet::new(IpAddr::from([10, byte & 3, byte, byte]), bits).unwrap()
        });
        let v6 = (any::<u8>(), 0..=128_u8).prop_map(|(byte, bits)| {
            IpNet::new(IpAddr::from([0x2001, u16::from(byte & 3), 0, 0, 0, 0, 0, 1]), bits).unwrap()
        });
        prop::collection::vec(prop_oneof![v4, v6], 0..12)
    }

    proptest! {
        #[test]
        fn the_list_holds_what_one_of_its_networks_holds(
            networks in networks(), v4 in 0..1024_u32, v6 in 0..4_u16,
        ) {
            let list = Networks::try_new(networks.iter().copied()).unwrap();
            let v4 = IpAddr::from((0x0a00_0000 | (v4 << 8)).to_be_bytes());
            for ip in [v4, IpAddr::from([0x2001, v6, 0, 0, 0, 0, 0, 1])] {
                let held = networks.iter().any(|network| network.contains(&ip));
                prop_assert_eq!(list.contains(ip), held, "{}", ip);
            }
        }
    }
}
