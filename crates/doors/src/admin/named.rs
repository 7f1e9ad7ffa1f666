//! A request that somebody names by its attributes, to look for its keys.

use std::fmt::Write as _;

use tollgate_rules::{RequestLine, RuleSet};

use super::{Outcome, bad_request};

/// The request with these attributes, under the names that rules use. `method` and `path` need not
/// be there: keys are mostly made of other things.
pub(super) fn request<'a>(
    rules: &RuleSet,
    attributes: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Outcome<RequestLine> {
    let (mut method, mut path, mut rest) = ("GET", "/", String::new());
    for (name, value) in attributes {
        match name {
            "method" => method = value,
            "path" => path = value,
            _ if name.contains(|char: char| !is_of_a_name(char)) || name.is_empty() => {
                return Err(bad_request(&format!("`{}` is no attribute", name.escape_debug())));
            }
            // A `String` takes whatever is written to it.
            _ => drop(write!(rest, " {name}={}", Quoted(value))),
        }
    }
    let is_odd = |char: char| !char.is_ascii_graphic() || char == '"';
    if method.is_empty() || method.contains(is_odd) {
        return Err(bad_request("`method` is none of HTTP: write GET or POST, or leave it out"));
    }
    let line = format!("{method} {}{rest}", Quoted(path));
    let line = line.parse().and_then(|line: RequestLine| line.for_tiers(rules.tiers()));
    line.map_err(|error| bad_request(&format!("{error}: {}", error.remedy())))
}

const fn is_of_a_name(char: char) -> bool {
    char.is_ascii_graphic() && !matches!(char, '=' | '"')
}

/// A value as it stands in a line.
struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_char('"')?;
        for char in self.0.chars() {
            if matches!(char, '"' | '\\') {
                f.write_char('\\')?;
            }
            f.write_char(char)?;
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> RuleSet {
        let text = "tiers: { from: claims.plan, known: [free, pro], else: free }\nrules: []";
        RuleSet::parse(text).unwrap()
    }

    #[test]
    fn attributes_are_those_of_rules() {
        let attributes =
            [("user", "a \"b\" \\"), ("path", "/x y"), ("method", "POST"), ("tier", "pro")];
        let line = request(&rules(), attributes).unwrap();
        line.with(|request| {
            assert_eq!((request.method(), request.path()), ("POST", "/x y"));
            assert_eq!(request.attribute("user"), Some("a \"b\" \\"));
            assert_eq!(request.attribute("claims.plan"), Some("pro"));
        });
    }

    #[test]
    fn what_is_no_attribute_is_refused() {
        for bad in [
            [("usr", "x")],
            [("user x=1 user", "x")],
            [("ip", "here")],
            [("tier", "gold")],
            [("", "x")],
            [("method", "GET / user=x")],
            [("method", "")],
            [("path", "x")],
        ] {
            assert!(request(&rules(), bad).is_err(), "{bad:?}");
        }
        assert!(request(&rules(), [("user", "a"), ("user", "b")]).is_err());
    }
}
