//! The scripts, put together when this is compiled.

use std::sync::OnceLock;

use redis::Script;

/// One script for each algorithm. Buckets that police and buckets that shape are the same to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Algorithm {
    Bucket,
    Window,
    Sliding,
    Permits,
    Log,
}

impl Algorithm {
    pub(super) const ALL: [Self; 5] =
        [Self::Bucket, Self::Window, Self::Sliding, Self::Permits, Self::Log];

    pub(super) const fn source(self) -> &'static str {
        macro_rules! source {
            ($($part:literal),+) => {
                concat!($(include_str!(concat!("lua/", $part, ".lua")), "\n"),+)
            };
        }
        match self {
            Self::Bucket => source!("prelude", "books", "bucket"),
            Self::Window => source!("prelude", "books", "window"),
            Self::Sliding => source!("prelude", "books", "sliding"),
            Self::Permits => source!("prelude", "books", "permits"),
            Self::Log => source!("prelude", "log"),
        }
    }

    /// The name that Redis gives to the script.
    pub(super) fn hash(self) -> &'static str {
        static HASHES: OnceLock<[String; 5]> = OnceLock::new();
        let hash = |algorithm: Self| Script::new(algorithm.source()).get_hash().to_owned();
        &HASHES.get_or_init(|| Self::ALL.map(hash))[self as usize]
    }
}
