//! A connection with time limits for its peer, closed so that no response is lost.

use std::future::Future as _;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// The most unread bytes that are discarded before a connection is closed.
const DISCARDED: usize = 8 * 1024 * 1024;

/// How long a peer has to read the response and close its side, after this side is closed.
const GRACE: Duration = Duration::from_secs(2);

/// A connection with a time limit for reading each response, and an orderly close.
///
/// Closing a socket with bytes unread resets it, and a reset discards an answer that the peer has
/// not read yet. So this side is shut down first, what is still coming is discarded up to a bound,
/// and the socket is closed when the peer has closed it or its time is up.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    patience: Duration,
    /// The deadline of the response that the peer has not read yet.
    stalled: Option<Pin<Box<Sleep>>>,
    /// The deadline of the close, after this side is shut down.
    closing: Option<Pin<Box<Sleep>>>,
    discarded: usize,
}

impl Peer {
    /// Creates a connection with this time limit for each response.
    pub fn new(stream: TcpStream, patience: Duration) -> Self {
        Self { stream, patience, stalled: None, closing: None, discarded: 0 }
    }

    /// Returns the result of a write, or an error if the peer has not read the response in time.
    fn in_time<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_pending() {
            let patience = self.patience;
            let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
            ready!(stalled.as_mut().poll(cx));
            return Poll::Ready(Err(ErrorKind::TimedOut.into()));
        }
        written
    }
}

impl AsyncRead for Peer {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Peer {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.in_time(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.in_time(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Comes after the last byte of an answer was written, so the next one has all its time.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stalled = None;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        }
        let Self { stream, closing, discarded, .. } = &mut *self;
        let time = closing.get_or_insert_with(|| Box::pin(sleep(GRACE)));
        let mut chunk = [0; 16 * 1024];
        while time.as_mut().poll(cx).is_pending() && *discarded < DISCARDED {
            let mut chunk = ReadBuf::new(&mut chunk);
            match ready!(Pin::new(&mut *stream).poll_read(cx, &mut chunk)) {
                Ok(()) if !chunk.filled().is_empty() => {
                    *discarded = discarded.saturating_add(chunk.filled().len());
                }
                _ => return Poll::Ready(Ok(())),
            }
        }
        // More than the bound: what comes now stays in the kernel, until the time is up.
        if !time.is_elapsed() {
            ready!(time.as_mut().poll(cx));
        }
        Poll::Ready(Ok(()))
    }
}
