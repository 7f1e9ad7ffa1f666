//! Where a door listens.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where a door listens: an address with a port, or the path of a Unix socket.
///
/// ```
/// use tollgate_doors::Address;
/// let address: Address = "127.0.0.1:4290".parse()?;
/// assert!(address.is_of_this_machine());
/// let address: Address = "unix:/run/tollgate/http.sock".parse()?;
/// assert_eq!(address.to_string(), "unix:/run/tollgate/http.sock");
/// # Ok::<(), tollgate_doors::AddressError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address and a port; port 0 is any that is free.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// The text is no address to listen on. Nothing was opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no address: write 127.0.0.1:4290, [::1]:4290 or unix:/path/to/socket")]
pub struct AddressError {
    text: String,
}

impl Address {
    /// Whether nobody on another machine can reach it.
    ///
    /// ```
    /// # use tollgate_doors::Address;
    /// let address: Address = "0.0.0.0:4299".parse()?;
    /// assert!(!address.is_of_this_machine());
    /// # Ok::<(), tollgate_doors::AddressError>(())
    /// ```
    pub fn is_of_this_machine(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = || AddressError { text: text.to_owned() };
        match text.strip_prefix("unix:") {
            Some("") => Err(error()),
            Some(path) => Ok(Self::Unix(Path::new(path).to_owned())),
            None => text.parse().map(Self::Tcp).map_err(|_| error()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        for bad in ["", "localhost", "127.0.0.1", ":4290", "unix:", "127.0.0.1:99999"] {
            let error = bad.parse::<Address>().unwrap_err();
            assert!(error.to_string().contains("127.0.0.1:4290"), "{error}");
        }
    }

    #[test]
    fn only_loopback_and_unix_sockets_are_of_this_machine() {
        for (text, own) in [
            ("127.0.0.1:1", true),
            ("127.9.9.9:1", true),
            ("[::1]:1", true),
            ("unix:/tmp/a", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("192.0.2.1:1", false),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().is_of_this_machine(), own, "{text}");
        }
    }
}
