//! What a call may take, in time and size.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Buf as _, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};
use tower::BoxError;

/// What took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for a turn: the request was never sent.
    Turn,
    /// TCP and TLS: the request was never sent.
    Connect,
    /// The head of the response.
    Headers,
    /// The body of the response.
    Body,
}

/// A call took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} within {limit:?}", match phase {
    Phase::Turn => "no turn among the hub's own requests to this API server",
    Phase::Connect => "no connection",
    Phase::Headers => "no answer",
    Phase::Body => "no complete answer",
})]
pub struct TimedOut {
    /// What took too long.
    pub phase: Phase,
    /// How long it was allowed to take.
    pub limit: Duration,
}

/// A response is larger than what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is larger than {limit} bytes")]
pub struct TooLarge {
    /// The most that is allowed.
    pub limit: usize,
}

/// The end of a call that isn't a watch.
#[derive(Debug)]
struct End {
    sleep: Pin<Box<Sleep>>,
    limit: Duration,
    bytes_left: usize,
    max_body: usize,
    /// The call is in flight until its body has ended.
    _turn: Option<OwnedSemaphorePermit>,
}

/// A response body that ends in time and below a size, or with an error.
#[derive(Debug)]
pub(super) struct Bounded<B> {
    inner: B,
    end: Option<End>,
}

impl<B> Bounded<B> {
    /// The body of a watch.
    pub(super) fn watch(inner: B) -> Self {
        Self { inner, end: None }
    }

    /// The body of any other call.
    pub(super) fn unary(inner: B, deadline: Instant, limit: Duration, max_body: usize, turn: Option<OwnedSemaphorePermit>) -> Self {
        let sleep = Box::pin(tokio::time::sleep_until(deadline));
        Self { inner, end: Some(End { sleep, limit, bytes_left: max_body, max_body, _turn: turn }) }
    }
}

impl<B> Body for Bounded<B>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let this = &mut *self;
        if let Some(end) = &mut this.end
            && end.sleep.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Some(Err(TimedOut { phase: Phase::Body, limit: end.limit }.into())));
        }
        let frame = match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
            None => {
                this.end = None;
                return Poll::Ready(None);
            }
            Some(frame) => frame.map_err(Into::into)?,
        };
        if let (Some(end), Some(data)) = (&mut this.end, frame.data_ref()) {
            match end.bytes_left.checked_sub(data.remaining()) {
                Some(left) => end.bytes_left = left,
                None => return Poll::Ready(Some(Err(TooLarge { limit: end.max_body }.into()))),
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
