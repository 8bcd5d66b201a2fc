//! Errors in values of the configuration, and their position in the file.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An error in a value that is TOML of the right type.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Path to the value through tables and lists, such as `faces.udp.mtu` or `face[0].mtu`.
    path: String,
    /// The error and its remedy.
    message: String,
}

impl Fault {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault { path: path.into(), message: message.into() }
    }

    /// Creates a fault and puts section and key before a message that does not name them, such as one of the operating
    /// system.
    pub(crate) fn with_key(path: impl Into<String>, message: &str) -> Fault {
        let path = path.into();
        let key_path = without_index(&path).unwrap_or(&path);
        let message = match key_path.rsplit_once('.') {
            Some((section, key)) => match without_index(section) {
                Some(list) => format!("`{key}` in section [[{list}]]: {message}"),
                None => format!("`{key}` in section [{section}]: {message}"),
            },
            None => format!("`{key_path}`: {message}"),
        };
        Fault { path, message }
    }

    pub(crate) fn into_message(self) -> String {
        self.message
    }

    /// Returns the byte range in `text` of the key or list element. If the text does not have it, returns the range of
    /// the innermost table or key on its path that the text has; `None` if it has none.
    pub(crate) fn locate(&self, text: &str) -> Option<Range<usize>> {
        let document = DeTable::parse(text).ok()?;
        let mut table: Option<&DeTable<'_>> = Some(document.get_ref());
        let mut found = None;
        for part in self.path.split('.') {
            let (key, indices) = part.split_once('[').unwrap_or((part, ""));
            let Some((written, mut value)) = table.and_then(|table| entry(table, key)) else { break };
            found = Some(written);
            for index in indices.split(['[', ']']).filter_map(|index| index.parse::<usize>().ok()) {
                let Some(element) = value.get_ref().as_array().and_then(|list| list.get(index)) else { break };
                value = element;
                found = Some(element.span());
            }
            table = value.get_ref().as_table();
        }
        found
    }
}

/// Returns the value of a key in a table, and the byte range of the key.
fn entry<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> Option<(Range<usize>, &'t Spanned<DeValue<'i>>)> {
    table.iter().find(|(written, _)| written.get_ref() == key).map(|(written, value)| (written.span(), value))
}

/// Returns `a.b` for `a.b[3]`; `None` without an index.
fn without_index(path: &str) -> Option<&str> {
    path.strip_suffix(']')?.rsplit_once('[').map(|(list, _)| list)
}
