//! Outputs for the content of a fetched object: a stream in order, or a file where each segment is written at its
//! offset.

mod file;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};

pub use file::{FileOutput, LayoutError};

/// Reason why content could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// Writing failed.
    #[error("cannot write the content: {0}")]
    Write(#[from] io::Error),
    /// The offset of a segment in the file is unknown.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// Takes the segments of one object, each once: the first one first, the others in any order.
pub trait Output {
    /// Takes the content of a segment; the next [`write`](Self::write) or a later one writes it.
    ///
    /// # Errors
    /// [`OutputError::Layout`].
    fn take(&mut self, segment: u64, content: &[u8]) -> Result<(), OutputError>;

    /// Writes pending content. Called after every batch of segments.
    fn write(&mut self) -> impl Future<Output = io::Result<()>>;

    /// Writes the rest. All segments have been taken; `last` is the number of the last one.
    fn finish(&mut self, last: u64) -> impl Future<Output = Result<(), OutputError>>;
}

/// Writes segments in order. Segments that arrive early wait in memory.
pub struct InOrder<W> {
    output: W,
    next: u64,
    waiting: BTreeMap<u64, Vec<u8>>,
}

impl<W: AsyncWrite + Unpin> InOrder<W> {
    /// Creates an output that writes to `output` and flushes it at the end.
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

/// Writes nothing; for measuring how fast an object arrives.
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
