//! Reads the server description of the power model, by the name of a published server or from a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::server::{Server, ServerError};
use crate::servers;

/// Longest description, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The reason why there is no server description.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// There is neither a published server nor a file of this name.
    #[error(
        "'{0}' is neither a published server ('namehop power server' lists them) nor a file; 'namehop power server \
         NAME' prints a description to start from"
    )]
    Unknown(String),
    /// The file cannot be read.
    #[error("cannot read the server description {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file is not a valid description.
    #[error("{}: {source}", path.display())]
    Server {
        /// The file.
        path: PathBuf,
        /// The error in the file.
        source: ServerError,
    },
}

/// Returns the published server of this name, or the one described by the file of this name.
pub fn read_server(name_or_path: &str) -> Result<Server, DescriptionError> {
    if let Some(server) = servers::published(name_or_path) {
        return Ok(server);
    }
    let path = Path::new(name_or_path);
    let text = read(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => DescriptionError::Unknown(name_or_path.to_owned()),
        _ => DescriptionError::File { path: path.to_owned(), source },
    })?;
    Server::from_toml(&text).map_err(|source| DescriptionError::Server { path: path.to_owned(), source })
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let length = File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if length as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 1 MiB"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn servers_are_found_by_name_and_by_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let published = read_server("e3-1220").expect("published");
        let path = folder.path().join("mine.toml");
        fs::write(&path, published.to_toml(&[])).expect("written");
        assert_eq!(read_server(path.to_str().expect("UTF-8")).expect("described"), published);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let message = |name: &str| read_server(name).expect_err(name).to_string();
        assert!(message("e4").starts_with("'e4' is neither a published server"));
        assert!(message(folder.path().to_str().expect("UTF-8")).starts_with("cannot read the server description"));
        let path = folder.path().join("large.toml");
        let name = path.to_str().expect("UTF-8");
        fs::write(&path, vec![b'#'; MAX_BYTES as usize + 1]).expect("written");
        assert!(message(name).ends_with("longer than 1 MiB"));
        fs::write(&path, "name = 5").expect("written");
        assert!(message(name).contains("large.toml: "), "{}", message(name));
        fs::write(&path, b"\xff").expect("written");
        assert!(message(name).starts_with("cannot read the server description"));
    }
}
