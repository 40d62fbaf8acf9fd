//! Response bodies: whole, in pieces that are not copied together, or as a stream.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Frame, SizeHint};

/// The body of every answer to a client.
pub enum Body {
    /// Pieces, all there already; their total length is known to the client.
    Pieces(VecDeque<Bytes>),
    /// Pieces as they come.
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pieces(pieces) => f.debug_tuple("Pieces").field(&pieces.len()).finish(),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl Body {
    /// No body.
    #[must_use]
    pub fn empty() -> Self {
        Self::Pieces(VecDeque::new())
    }

    /// One piece.
    #[must_use]
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self::Pieces(VecDeque::from([bytes.into()]))
    }

    /// Several pieces.
    #[must_use]
    pub fn pieces(pieces: Vec<Bytes>) -> Self {
        Self::Pieces(pieces.into())
    }

    /// Pieces as they come.
    #[must_use]
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::Stream(Box::pin(stream))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Pieces(pieces) => Poll::Ready(pieces.pop_front().map(|piece| Ok(Frame::data(piece)))),
            Self::Stream(stream) => {
                stream.as_mut().poll_next(context).map(|piece| piece.map(Frame::data).map(Ok))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Pieces(pieces) => pieces.is_empty(),
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Pieces(pieces) => SizeHint::with_exact(
                pieces.iter().map(|piece| u64::try_from(piece.len()).unwrap_or(u64::MAX)).sum(),
            ),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
