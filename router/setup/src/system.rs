//! Access to the files of a host, below a root that tests replace by a simulated tree.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

/// Why a program of this host did not succeed.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// It cannot be run.
    #[error("{program}: {source}")]
    NotRun {
        /// Name of the program.
        program: String,
        /// Error of the system.
        source: io::Error,
    },
    /// It failed without a message.
    #[error("{0} failed")]
    Failed(String),
    /// It failed; the text is its error output.
    #[error("{0}")]
    Reported(String),
}

/// The root of `/proc`, `/sys`, `/etc` and `/lib/modules`.
#[derive(Debug, Clone)]
pub struct System {
    root: PathBuf,
}

impl System {
    /// Creates access to the host with its files below `root`; `/` means this host.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        System { root: root.into() }
    }

    /// Returns whether this is the running host, not a simulated tree or a copy.
    pub fn is_this_host(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Returns the path below the root for `path`, which begins with `/`.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Returns the text of a file, trimmed; `None` if it cannot be read.
    pub fn read(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Returns the unmodified text of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub fn contents(&self, path: &str) -> io::Result<Option<String>> {
        match fs::read_to_string(self.path(path)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the number in a file.
    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.read(path)?.parse().ok()
    }

    /// Returns the names in a folder, sorted; empty if it cannot be read.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Returns the last component of a symbolic link's target.
    pub fn link_name(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// Returns the target of a symbolic link, unresolved.
    pub fn link_target(&self, path: &str) -> Option<PathBuf> {
        fs::read_link(self.path(path)).ok()
    }

    /// Returns whether the path exists.
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Writes to a kernel file in one call, as such files require.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn write_setting(&self, path: &str, value: &str) -> io::Result<()> {
        let mut file = File::options().write(true).truncate(!self.is_this_host()).open(self.path(path))?;
        file.write_all(value.as_bytes())
    }

    /// Atomically replaces a file, or creates it with its folder: readers see the old or the new text, even after a
    /// power failure.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn replace_file(&self, path: &str, text: &str) -> io::Result<()> {
        let path = self.path(path);
        let folder = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        let beside = beside(&path);
        let written = File::create(&beside).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&beside, &path)).and_then(|()| File::open(folder)?.sync_all()).inspect_err(
            |_| {
                // Removes the partial file; the error above is reported.
                let _ = fs::remove_file(&beside);
            },
        )
    }

    /// Removes the temporary file that [`replace_file`](Self::replace_file) leaves if the program is killed.
    pub(crate) fn remove_unfinished(&self, path: &str) {
        // The file rarely exists.
        let _ = fs::remove_file(beside(&self.path(path)));
    }

    /// Removes a file, if it exists.
    ///
    /// # Errors
    /// The file exists and cannot be removed.
    pub fn remove_file(&self, path: &str) -> io::Result<()> {
        match fs::remove_file(self.path(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Runs a program of this host. Does nothing in a simulated tree.
    ///
    /// # Errors
    /// The program fails, or it cannot be run.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<(), ProgramError> {
        if !self.is_this_host() {
            return Ok(());
        }
        let output = Command::new(program).args(arguments).output();
        let output = output.map_err(|source| ProgramError::NotRun { program: program.to_owned(), source })?;
        if output.status.success() {
            return Ok(());
        }
        let reported = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(match reported.is_empty() {
            true => ProgramError::Failed(program.to_owned()),
            false => ProgramError::Reported(reported),
        })
    }
}

/// Returns the path of the temporary file that replaces `path`.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

/// Parses a list of numbers in the kernel's format: `0-3,8`. Invalid parts are skipped.
pub(crate) fn parse_list(text: &str) -> Vec<u32> {
    const MOST: usize = 65_536;
    let ranges = text.split(',').filter_map(|part| {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    ranges.flatten().take(MOST).collect()
}

/// Formats a list in the format of [`parse_list`].
pub(crate) fn show_list(numbers: &[u32]) -> String {
    let ranges = numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b)).map(|range| match range {
        [only] => only.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    ranges.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel() {
        for (text, numbers) in [("0-3,8", vec![0, 1, 2, 3, 8]), ("", vec![]), ("5", vec![5]), ("x,1-y,2", vec![2])] {
            assert_eq!(parse_list(text), numbers, "{text}");
        }
        assert_eq!(parse_list("0-4294967295").len(), 65_536, "malformed input takes bounded memory");
        assert_eq!(show_list(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(show_list(&[]), "");
    }
}
