//! Forwarders on the command line: a command that starts one, or the socket of a running one.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::fault::ForwarderFault;

/// Default port of forwarders.
const USUAL_PORT: u16 = 6363;
/// Command that stands for the Namehop router.
const NAMEHOP: &str = "namehop";
const SOCKET_SCHEME: &str = "unix://";
const COPY: &str = "{copy:";

/// A forwarder to be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwarderSpec {
    /// Name in the figures.
    pub name: String,
    pub(super) way: Way,
}

/// Ways to obtain a forwarder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// Start the Namehop router with a generated configuration.
    Namehop,
    /// Run a command with arguments and placeholders.
    Command(Vec<String>),
    /// Attach to a running forwarder.
    Attach { socket: PathBuf, port: u16, pid: Option<u32> },
}

/// Why a text does not describe a forwarder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The command is empty, or a quote is not closed.
    #[error("'{0}' is not a command: it is empty, or a quote is not closed")]
    NoCommand(String),
    /// An option after the socket's path is invalid.
    #[error("'{0}' must be port=NUMBER or pid=NUMBER, as in unix:///run/nfd/nfd.sock?port=6363&pid=1234")]
    Option(String),
}

impl FromStr for ForwarderSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || ['-', '_', '.'].contains(&letter))
        };
        let (name, what) = match text.split_once('=') {
            Some((name, what)) if is_name(name) => (Some(name.to_owned()), what),
            _ => (None, text),
        };
        if let Some(path) = what.strip_prefix(SOCKET_SCHEME) {
            let name = name.unwrap_or_else(|| "running".to_owned());
            return Ok(ForwarderSpec { name, way: attach(path)? });
        }
        let words = shlex::split(what).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| SpecError::NoCommand(text.to_owned()))?;
        let program = Path::new(&words[0]).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.unwrap_or(program);
        let way = if words == [NAMEHOP] { Way::Namehop } else { Way::Command(words) };
        Ok(ForwarderSpec { name, way })
    }
}

fn attach(text: &str) -> Result<Way, SpecError> {
    let (path, options) = text.split_once('?').unwrap_or((text, ""));
    let (mut port, mut pid) = (USUAL_PORT, None);
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let wrong = || SpecError::Option(option.to_owned());
        match option.split_once('=') {
            Some(("port", number)) => port = number.parse().map_err(|_| wrong())?,
            Some(("pid", number)) => pid = Some(number.parse().map_err(|_| wrong())?),
            _ => return Err(wrong()),
        }
    }
    Ok(Way::Attach { socket: PathBuf::from(path), port, pid })
}

/// Values of the placeholders in a command.
pub(super) struct Placeholders<'a> {
    /// Folder that is removed when the forwarder ends.
    pub(super) folder: &'a Path,
    /// Path of the forwarder's Unix socket.
    pub(super) socket: &'a Path,
    /// TCP and UDP port of the forwarder.
    pub(super) port: u16,
}

impl Placeholders<'_> {
    /// Fills in the placeholders of a command, and of copies of the files that it names.
    ///
    /// # Errors
    /// Fails if the command does not name the socket, or if a file cannot be copied.
    pub(super) fn fill(&self, words: &[String]) -> Result<Vec<String>, ForwarderFault> {
        let mut names_socket = false;
        let filled: Vec<String> =
            words.iter().map(|word| self.fill_word(word, &mut names_socket)).collect::<Result<_, _>>()?;
        if names_socket { Ok(filled) } else { Err(ForwarderFault::NoSocketInCommand) }
    }

    fn fill_word(&self, word: &str, names_socket: &mut bool) -> Result<String, ForwarderFault> {
        let mut text = String::new();
        let mut rest = word;
        while let Some(at) = rest.find(COPY) {
            let (before, from) = rest.split_at(at);
            text.push_str(before);
            let Some((file, after)) = from[COPY.len()..].split_once('}') else { break };
            text.push_str(&self.copy(Path::new(file), names_socket)?.to_string_lossy());
            rest = after;
        }
        text.push_str(rest);
        Ok(self.fill_text(&text, names_socket))
    }

    fn copy(&self, file: &Path, names_socket: &mut bool) -> Result<PathBuf, ForwarderFault> {
        let failed = |source| ForwarderFault::Copy { file: file.to_owned(), source };
        let text = self.fill_text(&fs::read_to_string(file).map_err(failed)?, names_socket);
        let copy = self.folder.join(file.file_name().unwrap_or_default());
        fs::write(&copy, text).map_err(failed)?;
        Ok(copy)
    }

    fn fill_text(&self, text: &str, names_socket: &mut bool) -> String {
        *names_socket |= text.contains("{socket}");
        text.replace("{folder}", &self.folder.to_string_lossy())
            .replace("{socket}", &self.socket.to_string_lossy())
            .replace("{port}", &self.port.to_string())
    }
}
