//! Direct reads (O_DIRECT) of given ranges of a file by io_uring, with a fixed number in flight: the disk's own speed,
//! without the page cache.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use compio_buf::{BufResult, IntoInner, IoBuf};
use compio_driver::ToSharedFd;
use compio_driver::op::ReadAt;
use compio_runtime::{Attacher, Runtime, RuntimeBuilder};
use futures_util::future::join_all;
use nix::errno::Errno;
use nix::fcntl::OFlag;

/// Block sizes of direct reads to try, in bytes, smallest first.
const BLOCKS: [u64; 2] = [512, 4_096];
/// Alignment of buffers, in bytes.
const BUFFER_ALIGNMENT: usize = 4_096;

/// Direct reads of one file.
pub(super) struct DirectReads {
    runtime: Runtime,
    file: Attacher<File>,
    /// Block size of the file's direct reads, in bytes.
    block_bytes: u64,
}

/// Number of completed reads, and their duration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pass {
    pub(super) reads: u64,
    pub(super) time: Duration,
}

impl Pass {
    pub(super) fn per_s(self) -> f64 {
        self.reads as f64 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// Allocates a buffer with `bytes` bytes from an offset aligned to [`BUFFER_ALIGNMENT`]. Returns the buffer and the
/// offset.
fn aligned(bytes: usize) -> (Vec<u8>, usize) {
    let buffer = vec![0; bytes + BUFFER_ALIGNMENT];
    let start = buffer.as_ptr().align_offset(BUFFER_ALIGNMENT).min(BUFFER_ALIGNMENT);
    (buffer, start)
}

impl DirectReads {
    /// Opens a file for direct reads; `None` if the file system does not support them.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        let is_refused = |error: &io::Error| error.raw_os_error() == Some(Errno::EINVAL as i32);
        let file = match OpenOptions::new().read(true).custom_flags(OFlag::O_DIRECT.bits()).open(path) {
            Err(error) if is_refused(&error) => return Ok(None),
            opened => opened?,
        };
        let mut least = None;
        for block_bytes in BLOCKS {
            let (mut buffer, start) = aligned(block_bytes as usize);
            match file.read_at(&mut buffer[start..start + block_bytes as usize], block_bytes) {
                Ok(_) => {
                    least = Some(block_bytes);
                    break;
                }
                Err(error) if is_refused(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let Some(block_bytes) = least else { return Ok(None) };
        let runtime = RuntimeBuilder::new().build()?;
        let file = runtime.enter(|| Attacher::new(file))?;
        Ok(Some(DirectReads { runtime, file, block_bytes }))
    }

    /// Reads ranges with `depth` reads in flight, until `time` has passed or no range is left.
    pub(super) fn read(
        &self,
        places: impl Iterator<Item = Range<u64>>,
        depth: usize,
        time: Duration,
    ) -> io::Result<Pass> {
        let places = Cell::new(Some(places));
        let next = || {
            let mut left = places.take()?;
            let place = left.next();
            places.set(Some(left));
            place
        };
        let (reads, begun) = (Cell::new(0), Instant::now());
        let reader = || async {
            let (mut buffer, mut start) = aligned(0);
            while begun.elapsed() < time
                && let Some(place) = next()
            {
                let from = place.start / self.block_bytes * self.block_bytes;
                let bytes = (place.end.next_multiple_of(self.block_bytes) - from) as usize;
                if buffer.len() < bytes + BUFFER_ALIGNMENT {
                    (buffer, start) = aligned(bytes);
                }
                let operation = ReadAt::new(self.file.to_shared_fd(), from, buffer.slice(start..start + bytes));
                let BufResult(result, operation) = compio_runtime::submit(operation).await;
                buffer = operation.into_inner().into_inner();
                if result? < bytes {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
                }
                reads.set(reads.get() + 1);
            }
            Ok(())
        };
        let all: Vec<io::Result<()>> = self.runtime.block_on(async { join_all((0..depth).map(|_| reader())).await });
        all.into_iter().collect::<io::Result<()>>()?;
        Ok(Pass { reads: reads.get(), time: begun.elapsed() })
    }
}
