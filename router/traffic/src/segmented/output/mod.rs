//! Where the content of a fetched object goes: to a stream in order, or to a file, each segment to its place as soon as it comes.

mod file;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};

pub use file::{FileOutput, LayoutError};

/// Why content could not be put where it belongs.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// It could not be written.
    #[error("cannot write the content: {0}")]
    Write(#[from] io::Error),
    /// Its place is not known.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// Takes the segments of one object: each once, the first one first and the others in any order.
pub trait Output {
    /// Takes the content of a segment, to be written with the next [`write`](Self::write) or later.
    ///
    /// # Errors
    /// [`OutputError::Layout`].
    fn take(&mut self, segment: u64, content: &[u8]) -> Result<(), OutputError>;

    /// Writes what is due. Called after every batch of segments.
    fn write(&mut self) -> impl Future<Output = io::Result<()>>;

    /// Writes the rest: all segments have been taken, and `last` is the number of the last.
    fn finish(&mut self, last: u64) -> impl Future<Output = Result<(), OutputError>>;
}

/// Writes segments in order. Those that come early wait in memory.
pub struct InOrder<W> {
    output: W,
    next: u64,
    waiting: BTreeMap<u64, Vec<u8>>,
}

impl<W: AsyncWrite + Unpin> InOrder<W> {
    /// Writes to `output`, which is flushed at the end.
    pub fn new(output: W) -> Self {
        Self { output, next: 0, waiting: BTreeMap::new() }
    }
}

impl<W: AsyncWrite + Unpin> Output for InOrder<W> {
    fn take(&mut self, segment: u64, content: &[u8]) -> Result<(), OutputError> {
        self.waiting.insert(segment, content.to_vec());
        Ok(())
    }

    async fn write(&mut self) -> io::Result<()> {
        while let Some(content) = self.waiting.remove(&self.next) {
            self.next += 1;
            self.output.write_all(&content).await?;
        }
        Ok(())
    }

    async fn finish(&mut self, _: u64) -> Result<(), OutputError> {
        self.write().await?;
        Ok(self.output.flush().await?)
    }
}

/// Writes nothing: for those who only want to know how fast an object comes.
pub struct Discard;

impl Output for Discard {
    fn take(&mut self, _: u64, _: &[u8]) -> Result<(), OutputError> {
        Ok(())
    }

    async fn write(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn finish(&mut self, _: u64) -> Result<(), OutputError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stream_gets_segments_in_order() {
        let mut written = Vec::new();
        let mut output = InOrder::new(&mut written);
        for segment in [0, 2, 3, 1, 4] {
            output.take(segment, &[segment as u8]).unwrap();
            output.write().await.unwrap();
        }
        output.finish(4).await.unwrap();
        assert_eq!(written, [0, 1, 2, 3, 4]);
    }
}
