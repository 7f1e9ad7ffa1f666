//! What an expression can see of a request, looked up when it asks.

use std::net::IpAddr;

use cel::ExecutionError;
use cel::common::traits::{Container, Indexer, Sizer};
use cel::common::types::{CelInt, CelString, MAP_TYPE, Type};
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;

use crate::{Outcome, Request};

/// One request as an expression sees it. Nothing of it is copied before it is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) tier: Option<&'a str>,
    pub(super) client_ip: Option<IpAddr>,
    pub(super) outcome: Option<&'a Outcome<'a>>,
}

/// A map of names to strings that is searched in place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Names<'a> {
    /// Headers: in any case, the first of several.
    Headers(&'a [(&'a str, &'a str)]),
    /// What the caller said under names that begin with this.
    Given(Scope<'a>, &'static str),
    /// The variables which a request may lack, by their whole names.
    Variables(Scope<'a>),
}

/// The name under which [`Names::Variables`] is found. Nobody can write it.
pub(super) const VARIABLES: &str = "@";

impl<'a> Scope<'a> {
    fn text(&self, name: &str) -> Option<CelString<'a>> {
        let request = self.request;
        Some(CelString::from(match name {
            "request.method" => request.method(),
            "request.host" => request.host_name(),
            "request.path" => request.path(),
            "request.query" => request.query(),
            "client.ip" => return self.client_ip.map(|ip| CelString::from(ip.to_string())),
            _ => return self.given(name).map(CelString::from),
        }))
    }

    fn given(&self, name: &str) -> Option<&'a str> {
        match (name, self.tier) {
            ("tier", Some(tier)) => Some(tier),
            _ => self.request.attribute(name),
        }
    }

    fn status(&self) -> Option<CelInt> {
        self.outcome?.status.map(|status| CelInt::from(i64::from(status)))
    }

    fn names(&self, name: &str) -> Option<Names<'a>> {
        Some(match name {
            "request.headers" => Names::Headers(self.request.every_header()),
            "response.headers" => Names::Headers(self.outcome?.headers),
            "attributes" => Names::Given(*self, ""),
            "claims" => Names::Given(*self, "claims."),
            "body" => Names::Given(*self, "body."),
            "descriptor" => Names::Given(*self, "descriptor."),
            VARIABLES => Names::Variables(*self),
            _ => return None,
        })
    }

    fn value<'v>(&self, name: &str) -> Option<CowVal<'v, 'v>>
    where
        'a: 'v,
    {
        if name == "response.status" {
            return self.status().map(CowVal::owned);
        }
        match self.names(name) {
            Some(names) => Some(CowVal::owned(names)),
            None => self.text(name).map(CowVal::owned),
        }
    }
}

impl VariableResolver for Scope<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        self.value(variable)
    }
}

impl<'a> Names<'a> {
    fn find<'v>(&self, name: &str) -> Option<CowVal<'v, 'v>>
    where
        'a: 'v,
    {
        let text = match self {
            Self::Headers(headers) => {
                let mut headers = headers.iter();
                headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|header| header.1)
            }
            Self::Given(scope, "") => scope.given(name),
            Self::Given(scope, family) => {
                let mut given = scope.request.every_attribute().iter();
                let member = |known: &str| known.strip_prefix(family) == Some(name);
                given.find(|(known, _)| member(known)).map(|(_, value)| *value)
            }
            Self::Variables(scope) => return scope.value(name),
        };
        text.map(|text| CowVal::owned(CelString::from(text)))
    }

    fn count(&self) -> usize {
        match self {
            Self::Headers(headers) => headers.len(),
            Self::Given(scope, family) => {
                let given = scope.request.every_attribute().iter();
                given.filter(|(known, _)| known.starts_with(family)).count()
            }
            Self::Variables(_) => 0,
        }
    }
}

impl Val for Names<'_> {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &MAP_TYPE
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(*self)
    }
}

impl Container for Names<'_> {
    fn contains(&self, value: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(self.find(key(value)?).is_some())
    }
}

impl Indexer for Names<'_> {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let name = key(index)?;
        self.find(name).ok_or_else(|| match self {
            Self::Given(_, family) => ExecutionError::no_such_key(&format!("{family}{name}")),
            _ => ExecutionError::no_such_key(name),
        })
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
    }
}

impl Sizer for Names<'_> {
    fn size(&self) -> CelInt {
        CelInt::from(i64::try_from(self.count()).unwrap_or(i64::MAX))
    }
}

fn key(value: &dyn Val) -> Result<&str, ExecutionError> {
    value.downcast_ref::<CelString<'_>>().map(CelString::inner).ok_or_else(|| {
        let got = value.get_type().name().to_owned();
        ExecutionError::UnexpectedType { got, want: "string".to_owned() }
    })
}
