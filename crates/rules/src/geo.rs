//! stub
use std::{fmt, net::IpAddr};
/// c
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Country([u8; 2]);
impl Country {
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}
impl fmt::Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
/// g
#[derive(Debug)]
pub struct Geo;
impl Geo {
    pub(crate) fn asn(&self, _: IpAddr) -> Option<u32> {
        None
    }
    pub(crate) fn country(&self, _: IpAddr) -> Option<Country> {
        None
    }
}
impl std::str::FromStr for Country {
    type Err = ();
    fn from_str(_: &str) -> Result<Self, ()> {
        Err(())
    }
}
