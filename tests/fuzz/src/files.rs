//! A temporary folder for one run of a check that needs files.

use std::path::{Path, PathBuf};

/// In memory if the system has `/dev/shm`, because a fuzzer creates thousands per second.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        Folder(tempfile::Builder::new().prefix("namehop-fuzz-").tempdir_in(parent).expect("a temporary folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}
