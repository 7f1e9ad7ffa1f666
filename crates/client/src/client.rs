//! A connection to a tollgate.

use std::time::Duration;

use tollgate_proto::tollgate::v1::tollgate_client::TollgateClient;
use tollgate_proto::tollgate::v1::{CheckBatchRequest, ReportRequest};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::answer::Answer;
use crate::check::{Check, Ended};
use crate::stream::Checks;

/// A connection to a tollgate. It is made when it is first needed, and again when it is lost; clones
/// share it.
#[derive(Clone, Debug)]
pub struct Client {
    inner: TollgateClient<Channel>,
}

/// Nobody could say whether a request may pass.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is none.
    #[error("there is no such address: {0}")]
    Address(#[source] tonic::transport::Error),
    /// The tollgate cannot be reached, has not answered in time, or does not understand what was
    /// asked. If it was reached, it may have spent what was asked for.
    #[error("the tollgate does not answer: {}: {}", .0.code(), .0.message())]
    Call(#[source] Box<Status>),
    /// The tollgate answers with less than it was asked.
    #[error("the tollgate did not answer everything")]
    Incomplete,
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::Call(Box::new(status))
    }
}

impl Client {
    /// A client of the tollgate at this address: `http://127.0.0.1:4293`. Nothing is sent yet. Whoever
    /// gets no answer within a second is told so.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// assert!(tollgate_client::Client::new("http://127.0.0.1:4293").is_ok());
    /// assert!(tollgate_client::Client::new("not an address").is_err());
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If that is no address.
    pub fn new(address: &str) -> Result<Self, Error> {
        let endpoint = Endpoint::from_shared(address.to_owned()).map_err(Error::Address)?;
        Ok(Self::on(endpoint.connect_timeout(PATIENCE).timeout(PATIENCE).connect_lazy()))
    }

    /// A client on a connection that was made in another way.
    pub fn on(channel: Channel) -> Self {
        Self { inner: TollgateClient::new(channel) }
    }

    /// Whether a request may pass. One that may has spent what it costs.
    ///
    /// # Errors
    ///
    /// If nobody could say.
    pub async fn check(&self, check: Check) -> Result<Answer, Error> {
        Ok(self.inner.clone().check(check.0).await?.into_inner().into())
    }

    /// The same for many requests, each on its own, in order.
    ///
    /// # Errors
    ///
    /// If nobody could say: about none of them, then.
    pub async fn check_all(
        &self,
        checks: impl IntoIterator<Item = Check>,
    ) -> Result<Vec<Answer>, Error> {
        let checks: Vec<_> = checks.into_iter().map(|check| check.0).collect();
        let asked = checks.len();
        let told = self.inner.clone().check_batch(CheckBatchRequest { checks }).await?;
        let answers: Vec<Answer> = told.into_inner().answers.into_iter().map(Into::into).collect();
        if answers.len() == asked { Ok(answers) } else { Err(Error::Incomplete) }
    }

    /// The same for as many as come: answers are taken while further requests are sent. At most
    /// `ahead` wait to be sent.
    ///
    /// # Errors
    ///
    /// If nobody could be asked.
    pub async fn checks(&self, ahead: usize) -> Result<Checks, Error> {
        Checks::open(self.inner.clone(), ahead).await
    }

    /// Says how requests ended, and returns for each whether its ticket was known.
    ///
    /// # Errors
    ///
    /// If nobody heard it.
    pub async fn report(&self, ended: impl IntoIterator<Item = Ended>) -> Result<Vec<bool>, Error> {
        let ended = ended.into_iter().map(|ended| ended.0).collect();
        Ok(self.inner.clone().report(ReportRequest { ended }).await?.into_inner().reported)
    }
}

/// How long is waited for a connection, and for an answer.
const PATIENCE: Duration = Duration::from_secs(1);
