//! Why a store could not decide.

use std::time::Duration;

/// Why a store could not decide, and what to do about it. What then becomes of the request is up to
/// the rule's policy for failures.
///
/// Unless a variant says otherwise nothing is known about what the store did.
///
/// ```
/// use std::time::Duration;
/// use tollgate_store::StoreError;
/// let error = StoreError::Timeout { after: Duration::from_millis(50) };
/// assert!(error.is_transient());
/// assert!(error.to_string().contains("50ms"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Nobody is there, or the connection broke.
    #[error(
        "the store at {address} cannot be reached: {reason}; check that it runs, and the way to it"
    )]
    Unreachable {
        /// Where.
        address: String,
        /// What went wrong.
        reason: String,
    },
    /// It did not answer in time.
    #[error(
        "the store did not answer within {after:?}; check its load, its slow log and the network"
    )]
    Timeout {
        /// What time it had.
        after: Duration,
    },
    /// More questions are under way than there may be. Nothing was done.
    #[error(
        "{under_way} questions to the store are under way, and no more are taken; it is too slow"
    )]
    Busy {
        /// How many.
        under_way: usize,
    },
    /// It reads its data set. Nothing was done.
    #[error("the store is loading its data set; it will answer when it has")]
    Loading,
    /// It takes no writes. Nothing was done.
    #[error("the store takes no writes: {reason}; {}", so_that_it_writes(reason))]
    ReadOnly {
        /// What it said.
        reason: String,
    },
    /// It has no memory left for another key. Nothing was done.
    #[error(
        "the store is out of memory: {reason}; give it more, or remove what else is in it. A policy \
         that evicts keys would forget counts"
    )]
    OutOfMemory {
        /// What it said.
        reason: String,
    },
    /// Under the key's name stands something that is not ours. It was left as it is.
    #[error(
        "the store holds something else under `{name}`, which was left as it is; remove it, or use \
         another database"
    )]
    WrongType {
        /// The name in the store.
        name: String,
    },
    /// What stands under the key's name looks like ours and makes no sense.
    #[error("the store's state under `{name}` makes no sense ({reason}); remove it")]
    Garbled {
        /// The name in the store.
        name: String,
        /// What does not.
        reason: String,
    },
    /// What stands under the key's name was written by an older version, in a form that is not read any
    /// more. It was left as it is.
    #[error(
        "the store's state under `{name}` was written by an older version of Tollgate, and was left as \
         it is; it goes away by itself within {} after the last node of that version has ended, or \
         remove it: what was spent is not known then", lasting(*within)
    )]
    Older {
        /// The name in the store.
        name: String,
        /// How long it is kept after it was last written.
        within: Duration,
    },
    /// The credentials are wrong or missing. Nothing was done.
    #[error(
        "the store at {address} wants other credentials: {reason}; check the user and the password in \
         its URL"
    )]
    Credentials {
        /// Where.
        address: String,
        /// What it said.
        reason: String,
    },
    /// Sentinels do not say who the primary is to whoever we are. Nothing was done.
    #[error(
        "the Sentinels want other credentials: {reason}; name theirs at the end of the URL, \
         `?sentinel=user:password`, of a user who may do `+sentinel|get-master-addr-by-name`"
    )]
    SentinelCredentials {
        /// What they said.
        reason: String,
    },
    /// It speaks to nobody who shows no certificate. Nothing was done.
    #[error(
        "the store at {address} lets in nobody without a certificate ({reason}); name that of this \
         node, and its key"
    )]
    NoCertificate {
        /// Where.
        address: String,
        /// What it said.
        reason: String,
    },
    /// It does not take the certificate of this node. Nothing was done.
    #[error(
        "the store at {address} does not take this node's certificate: {reason}; name one that has \
         not ended, signed by one of its `tls-ca-cert-file`"
    )]
    BadCertificate {
        /// Where.
        address: String,
        /// What it said.
        reason: String,
    },
    /// Certificates were given for an address that has no use for them.
    #[error("certificates are for TLS, which is not spoken at `{url}`; begin it with `rediss`")]
    NoTls {
        /// What was given, without its password.
        url: String,
    },
    /// The user may not do what has to be done. Nothing was done.
    #[error(
        "the user of the store at {address} may not do this: {reason}; it needs `~tg:* +@hash +@list \
         +@string +exists +del +pexpire +time +info +evalsha +script|load +select +cluster|slots +asking`"
    )]
    NotAllowed {
        /// Where.
        address: String,
        /// What it said.
        reason: String,
    },
    /// It is too old, or something else. Nothing was done.
    #[error("the store is {found}; Redis from {least} on or Valkey is needed")]
    Version {
        /// What it says it is.
        found: String,
        /// What it has to be.
        least: &'static str,
    },
    /// The cluster does not serve the key. Nothing was done.
    #[error(
        "the cluster does not serve this key: {reason}; look at CLUSTER INFO for what is missing"
    )]
    ClusterDown {
        /// What it said.
        reason: String,
    },
    /// No Sentinel knows the primary.
    #[error("no Sentinel knows a primary named `{service}`: {reason}")]
    NoPrimary {
        /// The name that was asked for.
        service: String,
        /// What they said.
        reason: String,
    },
    /// The store's clock is far from ours, so that its answer cannot be told in our time. Redis may have
    /// done what it was asked by then, by its own clock: what is spent stays spent, and is no more than was
    /// asked for. A store in memory has done nothing.
    #[error("the store's clock is wrong by years; set the clocks of both machines")]
    Clock,
    /// A later exchange of the same node came before: this one needs no answer, and was not counted.
    #[error("a later exchange of the same node came before this one")]
    Overtaken,
    /// The store cannot count so far. Nothing was done.
    #[error("the store cannot keep `{limit}`: {reason}")]
    Unsupported {
        /// The limit.
        limit: String,
        /// Why not.
        reason: &'static str,
    },
    /// The address is no address.
    #[error("`{url}` is no address of a store: {reason}")]
    Address {
        /// What was given, without its password.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// It said something else.
    #[error("the store answered: {reason}")]
    Refused {
        /// What it said.
        reason: String,
    },
}

impl StoreError {
    /// Whether the same question may be answered soon, with nobody doing anything about it.
    ///
    /// ```
    /// use tollgate_store::StoreError;
    /// assert!(StoreError::Loading.is_transient());
    /// assert!(!StoreError::WrongType { name: "tg:{alice}:api".into() }.is_transient());
    /// ```
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Timeout { .. }
                | Self::Busy { .. }
                | Self::Loading
                | Self::ReadOnly { .. }
                | Self::OutOfMemory { .. }
                | Self::ClusterDown { .. }
                | Self::NoPrimary { .. }
        )
    }

    /// The same without what a key counts by, which may be the name of a person: for a log.
    ///
    /// ```
    /// use tollgate_store::StoreError;
    /// let error = StoreError::WrongType { name: "tg:{user=alice}:shop/api:5f3a9c01".into() };
    /// let error = error.without_keys().to_string();
    /// assert!(error.contains("`tg:{***}:shop/api:5f3a9c01`"), "{error}");
    /// ```
    #[must_use]
    pub fn without_keys(&self) -> Self {
        let hidden = |name: &str| match (name.find('{'), name.rfind('}')) {
            (Some(begin), Some(end)) if begin < end => {
                format!("{}***{}", &name[..=begin], &name[end..])
            }
            _ => name.to_owned(),
        };
        match self {
            Self::WrongType { name } => Self::WrongType { name: hidden(name) },
            Self::Garbled { name, reason } => {
                Self::Garbled { name: hidden(name), reason: reason.clone() }
            }
            Self::Older { name, within } => Self::Older { name: hidden(name), within: *within },
            other => other.clone(),
        }
    }

    /// Whether it is about the key alone: others may be answered all the same.
    ///
    /// ```
    /// use tollgate_store::StoreError;
    /// assert!(StoreError::Overtaken.is_about_key());
    /// assert!(!StoreError::Loading.is_about_key());
    /// ```
    pub const fn is_about_key(&self) -> bool {
        matches!(
            self,
            Self::WrongType { .. }
                | Self::Garbled { .. }
                | Self::Older { .. }
                | Self::Overtaken
                | Self::Unsupported { .. }
        )
    }
}

/// What to do about a server that takes no writes, by the word that it begins with. Not all of them are replicas.
fn so_that_it_writes(reason: &str) -> &'static str {
    match reason.split(' ').next() {
        Some("NOREPLICAS") => {
            "fewer replicas follow it than `min-replicas-to-write` says, or they are too far behind: see \
             `INFO replication` for which, and bring them back"
        }
        Some("MISCONF") => {
            "it could not write to its disk: see its log for why, and that the disk is neither full nor \
             read-only; it takes writes again when it has saved"
        }
        _ => "name the address of the primary, or of a Sentinel or Cluster that knows it",
    }
}

/// A span in a word that people read, rounded up.
fn lasting(span: Duration) -> String {
    let seconds = span.as_secs() + u64::from(span.subsec_nanos() > 0);
    let (unit, word) = match seconds {
        0..120 => (1, "s"),
        120..7_200 => (60, "min"),
        7_200..172_800 => (3_600, "h"),
        _ => (86_400, "days"),
    };
    format!("{} {word}", seconds.div_ceil(unit))
}
