//! Requests in a stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tollgate_proto::tollgate::v1::tollgate_client::TollgateClient;
use tollgate_proto::tollgate::v1::{CheckRequest, CheckResponse};
use tonic::Streaming;
use tonic::codegen::tokio_stream::Stream;
use tonic::transport::Channel;

use crate::answer::Answer;
use crate::check::Check;
use crate::client::Error;

/// Requests in a stream, and their answers in the same order.
#[derive(Debug)]
pub struct Checks {
    /// `None` once nothing more is asked.
    asking: Option<mpsc::Sender<CheckRequest>>,
    answers: Streaming<CheckResponse>,
}

impl Checks {
    pub(crate) async fn open(
        mut client: TollgateClient<Channel>,
        ahead: usize,
    ) -> Result<Self, Error> {
        let (asking, asked) = mpsc::channel(ahead.max(1));
        let answers = client.check_stream(Asked(asked)).await?.into_inner();
        Ok(Self { asking: Some(asking), answers })
    }

    /// Asks about a request. Waits while too many are not sent yet, which they are not while nobody
    /// takes the answers.
    ///
    /// # Errors
    ///
    /// If the stream has ended; [`next`](Self::next) says why.
    pub async fn ask(&self, check: Check) -> Result<(), Error> {
        match &self.asking {
            Some(asking) => asking.send(check.0).await.map_err(|_| Error::Incomplete),
            None => Err(Error::Incomplete),
        }
    }

    /// Asks nothing more. The answers that are left still come.
    pub fn finish(&mut self) {
        self.asking = None;
    }

    /// The next answer; `None` once nothing more is asked and all is answered.
    ///
    /// # Errors
    ///
    /// If the stream has ended otherwise.
    pub async fn next(&mut self) -> Result<Option<Answer>, Error> {
        Ok(self.answers.message().await?.map(Into::into))
    }
}

/// What is to be sent.
struct Asked(mpsc::Receiver<CheckRequest>);

impl Stream for Asked {
    type Item = CheckRequest;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<CheckRequest>> {
        self.0.poll_recv(context)
    }
}
