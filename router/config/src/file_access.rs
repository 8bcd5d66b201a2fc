//! Whether this user can read and create files, with remedies. Creates nothing.

use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access, geteuid};

/// Returns whether writing failed because of the disk and not because of this user. The disk may change while the
/// router runs, so the router starts all the same.
pub fn is_full_or_read_only(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

/// Returns why no file can be created at `file`, with a remedy; `None` if it can. Creates nothing.
pub fn obstacle(file: &Path) -> Option<String> {
    let (existing, error) = match refusal(file)? {
        Refusal::Path(text) => return Some(text),
        Refusal::Access(folder, error) => (folder, error),
    };
    Some(denied("write", &existing, error))
}

/// The reason why no file can be created.
enum Refusal {
    /// The path is wrong; the text says why.
    Path(String),
    /// This user cannot write to the folder.
    Access(PathBuf, Errno),
}

fn refusal(file: &Path) -> Option<Refusal> {
    let ancestors = folder_of(file).ancestors();
    // The last ancestor of a relative path is empty.
    let existing = ancestors
        .map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
        .find(|folder| folder.exists())?;
    if !existing.is_dir() {
        return Some(Refusal::Path(format!("{} is not a folder; correct the path", existing.display())));
    }
    if file.is_dir() {
        return Some(Refusal::Path(format!("{} is a folder; name a file", file.display())));
    }
    let error = access(existing, AccessFlags::W_OK | AccessFlags::X_OK).err()?;
    Some(Refusal::Access(existing.to_owned(), error))
}

/// Returns why the router cannot start with this state file, with a remedy. An existing readable file is enough, and so
/// is a read-only disk without a file.
pub fn state_obstacle(file: &Path) -> Option<String> {
    match file.is_file() || matches!(refusal(file), Some(Refusal::Access(_, Errno::EROFS))) {
        true => unreadable(file),
        false => obstacle(file).or_else(|| unreadable(file)),
    }
}

/// Returns why an existing file cannot be read, with a remedy.
pub fn unreadable(file: &Path) -> Option<String> {
    match access(file, AccessFlags::R_OK) {
        Ok(()) | Err(Errno::ENOENT) => None,
        Err(error) => Some(denied("read", file, error)),
    }
}

fn denied(permission: &str, path: &Path, error: Errno) -> String {
    format!(
        "user {} needs {permission} permission on {} ({}); change it with chmod or chown, or run as the owner",
        geteuid(),
        path.display(),
        error.desc()
    )
}

/// Returns the folder of a file; the working folder for a name without folder.
pub fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
