//! How many files a server may have open: every connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tollgate_doors::Config;

/// Takes as many as the system gives to whoever asks, and says so if that is too few.
pub(crate) fn take_all(config: &Config) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    let open_files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum,
        Err(_) => current,
    };
    let wanted = config.limits.connections as u64 + FILES_BESIDE;
    if let Some(open_files) = open_files.filter(|open_files| *open_files < wanted) {
        tracing::warn!(
            open_files,
            wanted,
            "the system allows fewer connections than `limits.connections`: raise `ulimit -n`"
        );
    }
}

/// What is open beside connections, roughly.
const FILES_BESIDE: u64 = 50;
