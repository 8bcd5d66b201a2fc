//! The programs of Namehop, which execute each other: `namehop`, `namehop-p4` and `namehop-lab`.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

/// The router and its clients.
pub const ROUTER: &str = "namehop";
/// The compiler of P4 programs.
pub const P4: &str = "namehop-p4";
/// Measurements, models and simulations.
pub const LAB: &str = "namehop-lab";

/// Returns the path of `program` if it is in the directory of this program; otherwise its name, which the system looks
/// up in the PATH.
pub fn beside(program: &str) -> PathBuf {
    in_directory_of(env::current_exe().ok().as_deref(), program)
}

fn in_directory_of(this: Option<&Path>, program: &str) -> PathBuf {
    let found = this.and_then(Path::parent).map(|directory| directory.join(program)).filter(|path| path.is_file());
    found.unwrap_or_else(|| PathBuf::from(program))
}

/// Replaces this process by `program`. Returns only if the program cannot be executed.
pub fn execute(program: &str, arguments: impl IntoIterator<Item = OsString>) -> Failure {
    let path = beside(program);
    let error = Command::new(&path).args(arguments).exec();
    Failure::failed(explain(&path, &error))
}

/// Explains why the program at `path` cannot be executed.
pub fn explain(path: &Path, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        return format!("cannot find the program '{name}' beside 'namehop' or in the PATH; 'make build' builds it");
    }
    format!("cannot execute {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_program_in_the_same_directory_comes_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let this = directory.path().join("namehop");
        assert_eq!(in_directory_of(Some(&this), P4), PathBuf::from(P4));
        fs::write(directory.path().join(P4), "").expect("a file");
        assert_eq!(in_directory_of(Some(&this), P4), directory.path().join(P4));
        assert_eq!(in_directory_of(None, P4), PathBuf::from(P4));
    }

    #[test]
    fn a_missing_program_is_named_with_a_remedy() {
        let text = explain(Path::new(LAB), &io::Error::from(io::ErrorKind::NotFound));
        assert!(text.contains("'namehop-lab'") && text.contains("make build"), "{text}");
    }
}
