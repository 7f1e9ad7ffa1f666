//! What a GraphQL query costs, computed from its text before anybody runs it.
//!
//! No schema is needed. The cost is in points, as with large public services:
//!
//! | part of the query | points |
//! |---|---|
//! | a field without a selection, `name` | 0 |
//! | a field with a selection, `owner { name }` | 1, and what is in it |
//! | ... with `first`, `last` or `limit`, `users(first: 50) { ... }` | 1, and 50 times what is in it (of several, the largest) |
//! | `nodes` and `edges` directly in such a field | 1, and what is in it |
//! | `nodes` and `edges` elsewhere | 1, and `list` times what is in it |
//! | a field of a mutation itself | 10, and what is in it, as above |
//! | a fragment, named or inline | what is in it |
//! | the whole query | the sum, but at least 1 |
//!
//! A number that is a variable is looked up in the variables, then in the defaults of the
//! operation. A number that is in neither, is null, below zero or no number at all, counts as
//! `list`. Sums and products stop at the largest number there is.
//!
//! Not seen: lists that take no such argument and are not called `nodes` or `edges`, as that is in
//! the schema. Counted though they may not run: what is under `@skip` and `@include`, and fields
//! that are asked for twice.
//!
//! **What it costs to find out.** A document has at most 64 kB and 15,000 words (spaces and
//! comments are words here), a fragment is looked into once for each of the three places in which
//! it can cost differently, and nothing goes deeper than 192 levels of fields, fragments and
//! values together: time grows with the length of the text, whatever it says. [`GraphqlCache`]
//! makes that rare.

mod cache;
mod query;
#[cfg(test)]
mod tests;

pub use cache::GraphqlCache;

/// How queries are counted: `cost: { graphql: { depth: 10, list: 20 } }`.
///
/// ```
/// use tollgate_rules::GraphqlCost;
/// let rule = GraphqlCost { depth: 10, list: 20 };
/// let query = "query ($n: Int) { users(first: $n) { nodes { name pet { name } } } }";
/// // users, and 50 times nodes and pet.
/// assert_eq!(rule.cost(query, None, Some(r#"{"n": 50}"#)), Ok(1 + 50 * 2));
/// // Nobody says how many: 20.
/// assert_eq!(rule.cost(query, None, None), Ok(1 + 20 * 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GraphqlCost {
    /// How deep fields may be nested: `{ user { name } }` is 2 deep. Deeper queries are refused
    /// before anybody runs them. Above 128, it is 128.
    pub depth: u16,
    /// How many items a list has whose length the query does not say. Too low, and such queries
    /// cost less than they take; too high, and harmless ones are denied.
    pub list: u32,
}

impl GraphqlCost {
    /// The longest document, and the longest variables that are looked at, in bytes.
    pub const MAX_LENGTH: usize = 64 << 10;

    /// The points of one operation of a document.
    ///
    /// `operation` is the name of the one to run, needed if there are several. `variables` is
    /// JSON; it is only read if the cost depends on it.
    ///
    /// ```
    /// use tollgate_rules::{GraphqlCost, GraphqlError};
    /// let rule = GraphqlCost { depth: 2, list: 20 };
    /// assert_eq!(rule.cost("{ version }", None, None), Ok(1));
    /// assert_eq!(rule.cost("mutation { a: like b: like }", None, None), Ok(20));
    /// let deep = rule.cost("{ a { b { c } } }", None, None);
    /// assert_eq!(deep, Err(GraphqlError::TooDeep { limit: 2 }));
    /// ```
    ///
    /// # Errors
    ///
    /// [`GraphqlError`] if the client sent something that cannot be run, or is refused.
    pub fn cost(
        &self,
        document: &str,
        operation: Option<&str>,
        variables: Option<&str>,
    ) -> Result<u64, GraphqlError> {
        query::cost(*self, document, operation, variables)
    }
}

/// Why a query has no cost. The client is at fault in all cases, and nothing was counted.
///
/// ```
/// use tollgate_rules::{GraphqlCost, GraphqlError};
/// let rule = GraphqlCost { depth: 10, list: 20 };
/// let error = rule.cost("{ ...a } fragment a on A { b { ...a } }", None, None).unwrap_err();
/// assert_eq!(error.to_string(), "the fragment `a` contains itself");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphqlError {
    /// More text than is looked at, or more words.
    #[error("a query has at most {limit} bytes and 15000 words, and its variables as many bytes")]
    TooLarge {
        /// How many bytes it may have.
        limit: usize,
    },
    /// Fields, or values in arguments, are nested too deeply.
    #[error("the query is nested more than {limit} deep")]
    TooDeep {
        /// How deep it may be.
        limit: u16,
    },
    /// It is not GraphQL.
    #[error("at byte {at}: {message}")]
    Syntax {
        /// Where.
        at: usize,
        /// What is wrong.
        message: String,
    },
    /// The document has no such operation, or several and nobody says which.
    #[error("there is no such operation, or more than one")]
    NoOperation,
    /// A fragment is used that the document does not have, or has twice.
    #[error("there is no fragment `{name}`, or more than one")]
    NoFragment {
        /// Its name.
        name: String,
    },
    /// A fragment leads back to itself.
    #[error("the fragment `{name}` contains itself")]
    Cycle {
        /// Its name.
        name: String,
    },
    /// The variables are not an object in JSON.
    #[error("the variables are not a JSON object")]
    Variables,
}
