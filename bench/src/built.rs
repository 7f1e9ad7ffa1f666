//! How this runner was built, and where.

use std::path::{Path, PathBuf};

use crate::error::BenchError;

/// The folder of built things, and the profile that built this runner.
#[derive(Debug)]
pub(crate) struct Built {
    target: PathBuf,
    profile: String,
}

impl Built {
    /// Asks where this program is: Cargo puts it into a folder named after the profile.
    pub(crate) fn here() -> Result<Self, BenchError> {
        Ok(Self::at(&std::env::current_exe().map_err(BenchError::Print)?))
    }

    fn at(program: &Path) -> Self {
        let mut above = program.ancestors().skip(1);
        let folder = above.next().unwrap_or_else(|| Path::new("."));
        let target = above.next().unwrap_or(folder).to_owned();
        let profile = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { target, profile }
    }

    /// Whether figures of this runner say anything about speed.
    pub(crate) fn is_release(&self) -> bool {
        self.profile == RELEASE
    }

    /// What has Cargo build it this way.
    pub(crate) fn flag(&self) -> String {
        match self.profile.as_str() {
            RELEASE => "--release".to_owned(),
            "debug" => "--profile dev".to_owned(),
            other => format!("--profile {other}"),
        }
    }

    /// The server, if it was built this way.
    pub(crate) fn server(&self) -> PathBuf {
        self.target.join(&self.profile).join("tollgate")
    }

    /// Where programs are installed that nobody else has.
    pub(crate) fn tools(&self) -> PathBuf {
        self.target.join("tools")
    }
}

const RELEASE: &str = "release";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_built_as_the_runner_was() {
        let release = Built::at(Path::new("/somewhere/target/release/tollgate-bench"));
        assert!(release.is_release());
        assert_eq!(release.flag(), "--release");
        let brief = Built::at(Path::new("/somewhere/target/brief/tollgate-bench"));
        assert!(!brief.is_release());
        assert_eq!(brief.flag(), "--profile brief");
        assert_eq!(release.server(), Path::new("/somewhere/target/release/tollgate"));
        assert_eq!(brief.server(), Path::new("/somewhere/target/brief/tollgate"));
        for built in [release, brief] {
            assert_eq!(built.tools(), Path::new("/somewhere/target/tools"));
        }
        let dev = Built::at(Path::new("/somewhere/target/debug/tollgate-bench"));
        assert_eq!(dev.flag(), "--profile dev");
    }
}
