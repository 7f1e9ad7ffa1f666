//! The certificate that a store is shown, as its files change.

use std::time::Duration;

use tollgate::Timer as _;
use tollgate_doors::{Service, Stamps, StoreIdentity};
use tollgate_store::RedisIdentity;

use crate::certificates;
use crate::error::Error;

/// What this node shows to the store, and the files that it is from.
pub(super) struct Shown {
    files: StoreIdentity,
    stamps: Stamps,
    pub(super) identity: RedisIdentity,
}

impl Shown {
    /// Reads the files.
    pub(super) fn new(files: &StoreIdentity) -> Result<Self, Error> {
        // Stamps first: what is written while we read is a change.
        let stamps = stamps(files);
        let identity = certificates::identity(&files.cert, &files.key)?;
        Ok(Self { files: files.clone(), stamps, identity })
    }

    /// Reads files again that have changed: certificates end, and the server goes on. Does not end.
    pub(super) async fn follow(&mut self, service: &Service) {
        loop {
            service.clock().sleep(INTERVAL).await;
            if !self.stamps.have_changed() {
                continue;
            }
            self.stamps = stamps(&self.files);
            match certificates::identity(&self.files.cert, &self.files.key) {
                Ok(newer) => {
                    self.identity.renew(&newer);
                    tracing::info!("the certificate for the store was read again");
                }
                Err(error) => {
                    tracing::error!("the store is shown the certificate from before: {error}");
                }
            }
        }
    }
}

fn stamps(files: &StoreIdentity) -> Stamps {
    [files.cert.clone(), files.key.clone()].into_iter().collect()
}

/// How often files are looked at.
const INTERVAL: Duration = Duration::from_millis(250);
