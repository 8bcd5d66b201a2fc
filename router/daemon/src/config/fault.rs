//! What is wrong with a value of the configuration, and where in the file it stands.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value that is TOML of the right type and still wrong.
#[derive(Debug)]
pub(super) struct Fault {
    /// The way to the value through tables and lists, as `faces.udp.mtu` or `face[0].mtu`.
    path: String,
    /// What is wrong and what would be right.
    message: String,
}

impl Fault {
    pub(super) fn new(path: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault { path: path.into(), message: message.into() }
    }

    /// A fault whose message does not speak of the file, such as one of the operating system: names section and key.
    pub(super) fn with_key(path: impl Into<String>, message: &str) -> Fault {
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

    pub(super) fn into_message(self) -> String {
        self.message
    }

    /// The bytes of `text` that hold the key or the element of a list. If it is not written there, those of the innermost table
    /// on the way to it that is; `None` when there is none.
    pub(super) fn locate(&self, text: &str) -> Option<Range<usize>> {
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

/// A value of a table and where its key stands.
fn entry<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> Option<(Range<usize>, &'t Spanned<DeValue<'i>>)> {
    table.iter().find(|(written, _)| written.get_ref() == key).map(|(written, value)| (written.span(), value))
}

/// `a.b` of `a.b[3]`.
fn without_index(path: &str) -> Option<&str> {
    path.strip_suffix(']')?.rsplit_once('[').map(|(list, _)| list)
}
