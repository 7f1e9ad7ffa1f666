//! A request that somebody asks about, as a message.

use std::collections::BTreeMap;
use std::net::IpAddr;

use smallvec::SmallVec;
use tollgate::Request;
use tollgate_proto::tollgate::v1::CheckRequest;
use tollgate_rules::Attribute;

use crate::grpc::frame::Refusal;

/// A request that somebody asks about, with nothing wrong in it.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    asked: &'a CheckRequest,
    ip: Option<IpAddr>,
}

/// As [`Request`] wants them.
pub(super) type Pairs<'r> = SmallVec<[(&'r str, &'r str); 4]>;

impl<'a> Asked<'a> {
    pub(super) fn new(asked: &'a CheckRequest) -> Result<Self, Refusal> {
        if asked.attributes.len() > MOST || asked.headers.len() > MOST {
            let message = format!("there are more than {MOST} attributes or headers");
            return Err(Refusal::invalid(message));
        }
        if let Some(name) = asked.attributes.keys().find(|name| !Attribute::is_given(name)) {
            return Err(unknown(name));
        }
        if asked.cost.is_some_and(|cost| cost > MOST_COST) {
            return Err(Refusal::invalid(format!("the cost is more than {MOST_COST}")));
        }
        let ip = match &*asked.ip {
            "" => None,
            text => Some(text.parse::<IpAddr>().map_err(|_| Refusal::invalid(NO_ADDRESS))?),
        };
        Ok(Self { asked, ip: ip.map(|ip| ip.to_canonical()) })
    }

    /// Headers and attributes, to make a [request](Self::request) with.
    pub(super) fn pairs(&self) -> (Pairs<'a>, Pairs<'a>) {
        let pairs = |map: &'a BTreeMap<String, String>| {
            map.iter().map(|(name, value)| (&**name, &**value)).collect()
        };
        (pairs(&self.asked.headers), pairs(&self.asked.attributes))
    }

    pub(super) fn request<'r>(
        &'r self,
        headers: &'r [(&'r str, &'r str)],
        attributes: &'r [(&'r str, &'r str)],
    ) -> Request<'r> {
        let or = |text: &'r str, usual| if text.is_empty() { usual } else { text };
        let request = Request::new(or(&self.asked.method, "GET"), or(&self.asked.path, "/"))
            .host(&self.asked.host)
            .cost(self.asked.cost.unwrap_or(1))
            .headers(headers)
            .attributes(attributes);
        self.ip.map_or(request, |ip| request.peer(ip))
    }
}

/// Why a name is none that can be given.
#[cold]
fn unknown(name: &str) -> Refusal {
    let shown: String = name.chars().take(60).collect();
    let remedy = match name.parse::<Attribute>() {
        Err(error) => error.remedy().to_owned(),
        Ok(Attribute::Header(_)) => "write it among the headers".to_owned(),
        Ok(_) => "it has a field of its own, or is found in others".to_owned(),
    };
    Refusal::invalid(format!("there is no attribute `{shown}` that can be given: {remedy}"))
}

/// The most attributes, and headers, of a request: rules look through all of them.
const MOST: usize = 256;

/// What everybody can count up to.
const MOST_COST: u64 = (1 << 53) - 1;

const NO_ADDRESS: &str =
    "`ip` is no address: write `192.0.2.7` or `2001:db8::1`, without a port, or leave it out";
