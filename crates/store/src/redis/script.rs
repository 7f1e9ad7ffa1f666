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
        macro_rules! part {
            ($name:literal) => {
                concat!(include_str!(concat!("lua/", $name, ".lua")), "\n")
            };
        }
        macro_rules! source {
            ([$($head:literal),+], $quick:literal, $budget:literal) => {
                concat!(
                    part!("prelude"),
                    $(part!($head),)+
                    part!("found"),
                    part!($quick),
                    part!("quickly"),
                    "local function open_books()\n",
                    part!("arguments"),
                    part!("arithmetic"),
                    part!("leases"),
                    part!("lanes"),
                    part!("books"),
                    part!($budget),
                    "end\n",
                    part!("answers")
                )
            };
        }
        match self {
            Self::Bucket => source!(["bucket_head"], "bucket_quick", "bucket"),
            Self::Window => source!(["window_loss", "window_head"], "window_quick", "window"),
            Self::Sliding => source!(["window_loss", "sliding_head"], "sliding_quick", "sliding"),
            Self::Permits => source!(["permits_head"], "permits_quick", "permits"),
            Self::Log => concat!(part!("prelude"), part!("arguments"), part!("log")),
        }
    }

    /// The name that Redis gives to the script.
    pub(super) fn hash(self) -> &'static str {
        static HASHES: OnceLock<[String; 5]> = OnceLock::new();
        let hash = |algorithm: Self| Script::new(algorithm.source()).get_hash().to_owned();
        &HASHES.get_or_init(|| Self::ALL.map(hash))[self as usize]
    }
}
