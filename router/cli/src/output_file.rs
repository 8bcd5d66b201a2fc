//! Output file for a fetched object.
//!
//! It is opened before the fetch, so that a missing permission shows at once, but changed only when content arrives. A
//! fetch that fails from the start leaves an existing file unchanged and creates no new one.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::fs::File;
use tokio::io::AsyncWrite;

/// A file that is truncated when the first new content is written.
pub struct OutputFile {
    file: File,
    /// `Some` until something is written.
    untouched: Option<Untouched>,
}

struct Untouched {
    /// Path of a new file, to be removed if nothing is written.
    made: Option<PathBuf>,
    /// Regular file to be truncated before the first write. Pipes and devices have no old content.
    regular: Option<std::fs::File>,
}

impl OutputFile {
    /// Opens or creates the file.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn open(path: &Path) -> io::Result<Self> {
        let is_new = !path.exists();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        let regular = if file.metadata()?.is_file() { Some(file.try_clone()?) } else { None };
        let untouched = Some(Untouched { made: is_new.then(|| path.to_owned()), regular });
        Ok(Self { file: File::from_std(file), untouched })
    }

    fn touch(&mut self) -> io::Result<()> {
        match self.untouched.take() {
            Some(Untouched { regular: Some(file), .. }) => file.set_len(0),
            _ => Ok(()),
        }
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(Untouched { made: Some(path), .. }) = &self.untouched {
            // An empty file that stays does no harm.
            let _ = fs::remove_file(path);
        }
    }
}

impl AsyncWrite for OutputFile {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.touch()?;
        Pin::new(&mut self.file).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // An empty object makes an empty file.
        self.touch()?;
        Pin::new(&mut self.file).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.file).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn a_file_changes_only_when_content_comes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old");
        fs::write(&path, "old content").unwrap();
        drop(OutputFile::open(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old content");
        let mut file = OutputFile::open(&path).unwrap();
        file.write_all(b"new").await.unwrap();
        file.flush().await.unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");

        let path = folder.path().join("new");
        drop(OutputFile::open(&path).unwrap());
        assert!(!path.exists());
        OutputFile::open(&path).unwrap().flush().await.unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        assert!(OutputFile::open(folder.path()).is_err());
        OutputFile::open(Path::new("/dev/null")).unwrap().write_all(b"x").await.unwrap();
    }
}
