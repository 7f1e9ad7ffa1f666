//! Costs of queries that were seen before.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, TryLockError};

use super::{GraphqlCost, GraphqlError};

/// A [`GraphqlCost`] that remembers: clients send the same few queries over and over, and to look
/// one up takes a fraction of what parsing it takes.
///
/// It holds at most 1024 queries and 4 MB. What it remembers is compared letter by letter, so
/// nobody can pass one query off as another. It never waits: who finds a part of it in use goes
/// without.
///
/// ```
/// use tollgate_rules::{GraphqlCache, GraphqlCost};
/// let costs = GraphqlCache::new(GraphqlCost { depth: 10, list: 20 });
/// let query = "{ users(first: 5) { pets(first: 3) { owner { name } } } }";
/// assert_eq!(costs.cost(query, None, None), Ok(1 + 5 * (1 + 3)));
/// assert_eq!(costs.cost(query, None, None), Ok(21), "from memory");
/// assert_eq!(costs.len(), 1);
/// ```
#[derive(Debug)]
pub struct GraphqlCache {
    rule: GraphqlCost,
    shards: Box<[Mutex<Shard>]>,
}

#[derive(Debug, Default)]
struct Shard {
    /// The oldest first.
    entries: VecDeque<Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    /// Document, operation and variables, one after another, and where the first two end.
    text: Box<str>,
    ends: Ends,
    result: Result<u64, GraphqlError>,
}

/// Where the document and the operation end, and whether there were operation and variables.
type Ends = (usize, usize, bool, bool);

impl GraphqlCache {
    /// An empty one.
    ///
    /// ```
    /// use tollgate_rules::{GraphqlCache, GraphqlCost};
    /// assert!(GraphqlCache::new(GraphqlCost { depth: 10, list: 20 }).is_empty());
    /// ```
    pub fn new(rule: GraphqlCost) -> Self {
        Self { rule, shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    /// As [`GraphqlCost::cost`].
    ///
    /// ```
    /// use tollgate_rules::{GraphqlCache, GraphqlCost};
    /// let costs = GraphqlCache::new(GraphqlCost { depth: 10, list: 20 });
    /// assert_eq!(costs.cost("{ me { name } }", None, None), Ok(1));
    /// ```
    ///
    /// # Errors
    ///
    /// The same. They are remembered too.
    pub fn cost(
        &self,
        document: &str,
        operation: Option<&str>,
        variables: Option<&str>,
    ) -> Result<u64, GraphqlError> {
        let compute = || self.rule.cost(document, operation, variables);
        let parts = [document, operation.unwrap_or_default(), variables.unwrap_or_default()];
        if parts.iter().map(|part| part.len()).sum::<usize>() > ENTRY_BYTES {
            return compute();
        }
        let before_variables = document.len() + parts[1].len();
        let ends = (document.len(), before_variables, operation.is_some(), variables.is_some());
        let mut hasher = DefaultHasher::new();
        (parts, ends).hash(&mut hasher);
        let hash = hasher.finish();
        // The remainder is below the number of shards.
        let shard = &self.shards[(hash % SHARDS) as usize];
        if let Some(result) = within(shard, |shard| shard.find(hash, parts, ends)).flatten() {
            return result;
        }
        let result = compute();
        let entry = Entry { hash, text: parts.concat().into(), ends, result: result.clone() };
        within(shard, |shard| shard.add(entry));
        result
    }

    /// How many queries it remembers, but for those which somebody is just looking at.
    ///
    /// ```
    /// use tollgate_rules::{GraphqlCache, GraphqlCost};
    /// assert_eq!(GraphqlCache::new(GraphqlCost { depth: 10, list: 20 }).len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.shards.iter().filter_map(|shard| within(shard, |shard| shard.entries.len())).sum()
    }

    /// Whether it remembers none.
    ///
    /// ```
    /// use tollgate_rules::{GraphqlCache, GraphqlCost};
    /// assert!(GraphqlCache::new(GraphqlCost { depth: 10, list: 20 }).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Shard {
    fn find(&self, hash: u64, parts: [&str; 3], ends: Ends) -> Option<Result<u64, GraphqlError>> {
        let is_it = |entry: &&Entry| {
            let (document, operation, ..) = ends;
            entry.hash == hash
                && entry.ends == ends
                && entry.text.get(..document) == Some(parts[0])
                && entry.text.get(document..operation) == Some(parts[1])
                && entry.text.get(operation..) == Some(parts[2])
        };
        self.entries.iter().find(is_it).map(|entry| entry.result.clone())
    }

    fn add(&mut self, entry: Entry) {
        // Somebody else may have been quicker.
        self.drop_where(|known| known.hash == entry.hash);
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
        while self.bytes > SHARD_BYTES || self.entries.len() > SHARD_ENTRIES {
            match self.entries.pop_front() {
                Some(oldest) => self.bytes -= oldest.bytes(),
                None => return,
            }
        }
    }

    fn drop_where(&mut self, which: impl Fn(&Entry) -> bool) {
        let bytes = &mut self.bytes;
        self.entries.retain(|entry| {
            let dropped = which(entry);
            if dropped {
                *bytes -= entry.bytes();
            }
            !dropped
        });
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        let message = match &self.result {
            Err(GraphqlError::Syntax { message: text, .. })
            | Err(GraphqlError::NoFragment { name: text } | GraphqlError::Cycle { name: text }) => {
                text.len()
            }
            _ => 0,
        };
        size_of::<Self>() + self.text.len() + message
    }
}

/// What is done with a shard that nobody else uses now. A shard is whole after every step, so
/// that it can be used on after somebody panicked in it.
fn within<T>(shard: &Mutex<Shard>, work: impl FnOnce(&mut Shard) -> T) -> Option<T> {
    match shard.try_lock() {
        Ok(mut shard) => Some(work(&mut shard)),
        Err(TryLockError::Poisoned(shard)) => Some(work(&mut shard.into_inner())),
        Err(TryLockError::WouldBlock) => None,
    }
}

const SHARDS: u64 = 32;

const SHARD_ENTRIES: usize = 32;

const SHARD_BYTES: usize = 128 << 10;

/// The longest query that is remembered, with its variables.
const ENTRY_BYTES: usize = 32 << 10;
