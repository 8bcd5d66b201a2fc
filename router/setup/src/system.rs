//! The files of a computer, below a root that tests replace by a made-up tree.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where `/proc`, `/sys`, `/etc` and `/lib/modules` are.
#[derive(Debug, Clone)]
pub struct System {
    root: PathBuf,
}

impl System {
    /// The computer whose files are below `root`; this one for `/`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        System { root: root.into() }
    }

    /// Whether it is this computer, and not a made-up tree or a copy.
    pub fn is_this_computer(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The path that `path`, which begins with `/`, has below the root.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The text of a file without white space at its ends; `None` when it cannot be read.
    pub fn read(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The text of a file as it is; `None` when there is no such file.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn contents(&self, path: &str) -> io::Result<Option<String>> {
        match fs::read_to_string(self.path(path)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The number that a file holds.
    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.read(path)?.parse().ok()
    }

    /// The names in a folder, in order; none when it cannot be read.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// The last part of where a symbolic link leads.
    pub fn link_name(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// Where a symbolic link leads, as it is written.
    pub fn link_target(&self, path: &str) -> Option<PathBuf> {
        fs::read_link(self.path(path)).ok()
    }

    /// Whether there is something at this path.
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Writes to a file of the kernel, in one call, as the kernel wants it.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn write_setting(&self, path: &str, value: &str) -> io::Result<()> {
        let mut file = File::options().write(true).truncate(!self.is_this_computer()).open(self.path(path))?;
        file.write_all(value.as_bytes())
    }

    /// Replaces a file as a whole, or makes it with its folder: a reader sees the old or the new one, also after a power failure.
    ///
    /// # Errors
    /// When it cannot be written.
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
                // What remains of it is of no use; the error that counts is the one above.
                let _ = fs::remove_file(&beside);
            },
        )
    }

    /// Removes what [`replace_file`](Self::replace_file) has left beside a file when the program was killed on the way.
    pub(crate) fn remove_unfinished(&self, path: &str) {
        // There is nearly always none.
        let _ = fs::remove_file(beside(&self.path(path)));
    }

    /// Removes a file that may be gone already.
    ///
    /// # Errors
    /// When it is there and stays.
    pub fn remove_file(&self, path: &str) -> io::Result<()> {
        match fs::remove_file(self.path(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Runs a program of this computer. In a made-up tree nothing is run.
    ///
    /// # Errors
    /// What it printed when it failed, or why it cannot be run.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        if !self.is_this_computer() {
            return Ok(());
        }
        let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(if said.is_empty() { format!("{program} failed") } else { said })
    }
}

/// Where the new text of a file is written before it takes the place of the old one.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

/// Reads a list of numbers as the kernel writes it: `0-3,8`. Parts that are no numbers are left out.
pub(crate) fn parse_list(text: &str) -> Vec<u32> {
    const MOST: usize = 65_536;
    let ranges = text.split(',').filter_map(|part| {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    ranges.flatten().take(MOST).collect()
}

/// Writes a list as [`parse_list`] reads it.
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
        assert_eq!(parse_list("0-4294967295").len(), 65_536, "nonsense takes bounded memory");
        assert_eq!(show_list(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(show_list(&[]), "");
    }
}
