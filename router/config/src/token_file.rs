//! Files that hold a token of the HTTP API: one line of text.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use namehop_manage::http::ApiToken;
use thiserror::Error;

/// Shortest and longest token, in characters.
const MIN_CHARACTERS: usize = 16;
const MAX_CHARACTERS: usize = 1024;

/// A token and its file.
#[derive(Debug)]
pub struct TokenFile {
    /// The token.
    pub token: ApiToken,
    /// Its file.
    pub path: PathBuf,
}

/// The reason why a token cannot be used.
#[derive(Debug, Error)]
#[error("cannot use the API token in {}: {reason}", path.display())]
pub struct TokenError {
    path: PathBuf,
    reason: String,
}

/// Reads the token in a configured file.
///
/// # Errors
/// The file cannot be read, or does not hold a token.
pub fn read(path: &Path) -> Result<String, TokenError> {
    let fault = |reason: String| TokenError { path: path.to_owned(), reason };
    let file = fs::File::open(path).map_err(|error| fault(format!("{error}; correct the path or its permissions")))?;
    let token = token_in(file).map_err(|error| fault(format!("{error}; it must be a file with one line of text")))?;
    token.ok_or_else(|| {
        fault(format!(
            "it must hold one line of {MIN_CHARACTERS} to {MAX_CHARACTERS} letters, digits and punctuation characters, \
             without spaces; `openssl rand -hex 32` creates a suitable token"
        ))
    })
}

/// Returns the token in an open file; `None` if it holds no valid one.
///
/// # Errors
/// The file cannot be read, or is not text.
pub fn token_in(file: fs::File) -> io::Result<Option<String>> {
    let mut text = String::new();
    file.take(MAX_CHARACTERS as u64 + 2).read_to_string(&mut text)?;
    let token = text.trim_ascii();
    let is_token =
        (MIN_CHARACTERS..=MAX_CHARACTERS).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
    Ok(is_token.then(|| token.to_owned()))
}
