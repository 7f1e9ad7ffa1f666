//! What is asked for, by its path.

/// Everything that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Check,
    Peek,
    Report,
    Welcome,
    OpenApi,
    Health,
    Ready,
}

impl Route {
    /// All of them, those first that are asked for most.
    const ALL: [Self; 7] = [
        Self::Check,
        Self::Peek,
        Self::Report,
        Self::Welcome,
        Self::OpenApi,
        Self::Health,
        Self::Ready,
    ];

    /// The one of this path.
    pub(super) fn of(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|route| route.path() == path)
    }

    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Check => "/v1/check",
            Self::Peek => "/v1/peek",
            Self::Report => "/v1/report",
            Self::Welcome => "/",
            Self::OpenApi => "/openapi.json",
            Self::Health => "/healthz",
            Self::Ready => "/readyz",
        }
    }

    /// Whether it is a POST. The others are GETs.
    pub(super) const fn takes_a_body(self) -> bool {
        matches!(self, Self::Check | Self::Peek | Self::Report)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;
    use crate::http::openapi;

    #[test]
    fn all_routes_are_in_the_document_and_no_others() {
        let document: Value = serde_json::from_str(openapi::TEXT).unwrap();
        let methods = |methods: &Value| methods.as_object().unwrap().keys().cloned().collect();
        let paths = document["paths"].as_object().unwrap().iter();
        let written: BTreeMap<_, Vec<String>> =
            paths.map(|(path, it)| (path.as_str(), methods(it))).collect();
        let served = Route::ALL.map(|route| {
            let method = if route.takes_a_body() { "post" } else { "get" };
            (route.path(), vec![method.to_owned()])
        });
        assert_eq!(written, BTreeMap::from(served));
    }
}
