//! Asynchronous reads and writes: by io_uring, or by threads where the system does not allow that.

use std::fs::File;
use std::io;

use compio_buf::{BufResult, IntoInner, IoBuf};
use compio_driver::ToSharedFd;
use compio_driver::op::{ReadAt, WriteAt};
use compio_runtime::Attacher;
use futures_util::future::LocalBoxFuture;

/// Result of a transfer: the number of bytes read or written, and the buffer with its original length.
pub(crate) type Transfer = LocalBoxFuture<'static, (io::Result<usize>, Vec<u8>)>;

/// A storage of bytes.
pub(crate) trait Storage {
    /// Reads into the first `bytes` bytes of a buffer from this offset.
    fn read(&self, buffer: Vec<u8>, bytes: usize, offset: u64) -> Transfer;
    /// Writes a buffer to this offset.
    fn write(&self, buffer: Vec<u8>, offset: u64) -> Transfer;
}

/// A file or block device.
pub(crate) struct FileStorage(Attacher<File>);

impl FileStorage {
    /// Wraps an open file. Must be called in the runtime of the thread that uses it.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        Ok(FileStorage(Attacher::new(file)?))
    }
}

impl Storage for FileStorage {
    fn read(&self, buffer: Vec<u8>, bytes: usize, offset: u64) -> Transfer {
        let end = bytes.min(buffer.len());
        let operation = ReadAt::new(self.0.to_shared_fd(), offset, buffer.slice(..end));
        Box::pin(async move {
            let BufResult(result, operation) = compio_runtime::submit(operation).await;
            (result, operation.into_inner().into_inner())
        })
    }

    fn write(&self, buffer: Vec<u8>, offset: u64) -> Transfer {
        let operation = WriteAt::new(self.0.to_shared_fd(), offset, buffer);
        Box::pin(async move {
            let BufResult(result, operation) = compio_runtime::submit(operation).await;
            (result, operation.into_inner())
        })
    }
}
