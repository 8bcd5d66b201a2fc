//! Writes `default.toml` and `docs/settings.md` from the declarations of the settings. `make settings` runs it, and a
//! test compares the files with what it writes.

use std::fmt::Write;

use namehop_store::PolicyKind;
use toml::{Table, Value};

/// Longest line of both files, in characters.
const LINE: usize = 140;

/// A section, for its documentation.
pub(crate) struct Description {
    /// The lines of its doc comment.
    pub about: &'static [&'static str],
    /// Its keys, in order.
    pub keys: Vec<Key>,
    /// The sections below it, in order.
    pub parts: Vec<Part>,
}

/// A key of a section.
pub(crate) struct Key {
    /// The key as it is written.
    pub name: &'static str,
    /// The lines of its doc comment.
    pub meaning: &'static [&'static str],
    /// An example, in TOML.
    pub example: Option<&'static str>,
    /// Smallest and largest value, as text for people.
    pub range: Option<[String; 2]>,
    /// Whether the section is invalid without the key.
    pub is_required: bool,
    /// The default; `None` if the key has none.
    pub default: Option<Value>,
}

/// A section below another one.
pub(crate) struct Part {
    /// The last part of its path.
    pub name: &'static str,
    /// How often it may occur.
    pub occurs: Occurs,
    /// Its contents.
    pub description: Description,
}

/// How often a section occurs in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occurs {
    /// Once; without it all its keys have their defaults.
    Once,
    /// Once or not at all.
    Optionally,
    /// Any number of times, as `[[section]]`.
    Repeatedly,
}

impl Description {
    /// Sets the defaults of the keys that are not required, from a section that has them all.
    pub(crate) fn with_defaults(mut self, defaults: &Table) -> Self {
        for key in self.keys.iter_mut().filter(|key| !key.is_required) {
            key.default = defaults.get(key.name).cloned();
        }
        self
    }

    /// Replaces the doc comment of the section, unless `about` is empty.
    pub(crate) fn with_about(mut self, about: &'static [&'static str]) -> Self {
        if !about.is_empty() {
            self.about = about;
        }
        self
    }

    /// Returns the text of the section with only its required keys, which have the values of their examples.
    pub(crate) fn shortest(&self) -> String {
        let required = self.keys.iter().filter(|key| key.is_required);
        required.map(|key| format!("{} = {}\n", key.name, key.example.unwrap_or("false"))).collect()
    }
}

impl Part {
    /// Returns the header of the section at this path.
    fn header(&self, path: &str) -> String {
        if self.occurs == Occurs::Repeatedly { format!("[[{path}]]") } else { format!("[{path}]") }
    }
}

impl Key {
    /// Returns the paragraphs of its meaning, the last one with its range.
    fn explanation(&self) -> Vec<String> {
        let mut paragraphs = paragraphs(self.meaning);
        if let (Some([low, high]), Some(last)) = (&self.range, paragraphs.last_mut()) {
            *last += &format!(" From {low} to {high}.");
        }
        paragraphs
    }
}

/// Returns the text of `default.toml`.
pub(crate) fn default_file(config: &Description) -> String {
    let mut text = comment("", &paragraphs(config.about));
    for part in &config.parts {
        add_section(&mut text, part.name, part, "");
    }
    text
}

/// Adds a section and those below it. Each line begins with `margin`; a section that may be absent is a comment.
fn add_section(text: &mut String, path: &str, part: &Part, margin: &str) {
    let Description { about, keys, parts } = &part.description;
    let margin = if part.occurs == Occurs::Once { margin } else { "#   " };
    // A section that only holds others needs no header.
    if !keys.is_empty() {
        *text += &format!("\n{}{margin}{}\n", comment("", &paragraphs(about)), part.header(path));
    }
    for key in keys {
        *text += &comment(margin, &key.explanation());
        if let Some(example) = key.example {
            *text += &format!("#   {} = {example}\n", key.name);
        }
        let is_shown = margin.is_empty() || key.example.is_none();
        if let Some(default) = key.default.as_ref().filter(|_| is_shown) {
            *text += &format!("{margin}{} = {default}\n", key.name);
        }
    }
    for part in parts {
        add_section(text, &format!("{path}.{}", part.name), part, margin);
    }
}

/// Puts commas between the thousands of a number of five or more digits.
pub(crate) fn with_commas(number: &str) -> String {
    if number.len() < 5 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.to_owned();
    }
    let mut text = String::new();
    for (position, digit) in number.chars().enumerate() {
        if position > 0 && (number.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns the text of `docs/settings.md`.
pub(crate) fn page(config: &Description) -> String {
    let mut text = "# Settings\n\nEvery key of the [configuration file](configuration.md), with its default. \
                    `namehop config show` prints the same as a file to start from.\n"
        .to_owned();
    for part in &config.parts {
        add_to_page(&mut text, part.name, part);
    }
    text
}

fn add_to_page(text: &mut String, path: &str, part: &Part) {
    let Description { about, keys, parts } = &part.description;
    if !keys.is_empty() {
        *text += &format!("\n## {}\n\n", part.header(path));
        for paragraph in paragraphs(about) {
            *text += &wrapped("", "", &paragraph);
        }
        text.push('\n');
    }
    for key in keys {
        let mut values = match (&key.default, key.is_required) {
            (Some(default), _) => format!("`{default}` by default"),
            (None, true) => "required".to_owned(),
            (None, false) => "not set by default".to_owned(),
        };
        if let Some([low, high]) = &key.range {
            let _ = write!(values, ", from {low} to {high}");
        }
        if let Some(example) = key.example {
            let _ = write!(values, ", for example `{example}`");
        }
        let mut meaning = paragraphs(key.meaning).into_iter();
        let first = meaning.next().unwrap_or_default();
        *text += &wrapped("* ", "  ", &format!("`{}`: {values}. {first}", key.name));
        for paragraph in meaning {
            let rest = if paragraph.starts_with("- ") { "    " } else { "  " };
            *text += &wrapped("  ", rest, &paragraph);
        }
    }
    for part in parts {
        add_to_page(text, &format!("{path}.{}", part.name), part);
    }
}

/// Link to the list of cache policies in a doc comment. The files have the names there.
const POLICIES: &str = "[`namehop_store::PolicyKind::ALL`]";

/// Joins the lines of a doc comment to paragraphs. An empty line, or one that begins an item of a list, begins one.
fn paragraphs(lines: &[&str]) -> Vec<String> {
    let mut paragraphs: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in lines.iter().map(|line| line.trim()) {
        match paragraphs.last_mut().filter(|_| is_open && !line.is_empty() && !line.starts_with("- ")) {
            Some(last) => *last += &format!(" {line}"),
            None if line.is_empty() => {}
            None => paragraphs.push(line.to_owned()),
        }
        is_open = !line.is_empty();
    }
    paragraphs.iter().map(|paragraph| paragraph.replace(POLICIES, &policies())).collect()
}

/// Returns the names of all cache policies, as values of a setting.
fn policies() -> String {
    let names: Vec<String> = PolicyKind::ALL.iter().map(|kind| format!("\"{kind}\"")).collect();
    let (last, others) = names.split_last().expect("there are policies");
    format!("{} or {last}", others.join(", "))
}

/// Returns paragraphs as a comment in TOML.
fn comment(margin: &str, paragraphs: &[String]) -> String {
    paragraphs
        .iter()
        .map(|paragraph| {
            let rest = if paragraph.starts_with("- ") { "#   " } else { "# " };
            wrapped(&format!("{margin}# "), &format!("{margin}{rest}"), paragraph)
        })
        .collect()
}

/// Returns the words of a paragraph; code between backticks is one word.
fn words(paragraph: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let is_open = |word: &String| word.matches('`').count() % 2 == 1;
    for part in paragraph.split(' ') {
        match words.last_mut().filter(|last| is_open(last)) {
            Some(code) => *code += &format!(" {part}"),
            None => words.push(part.to_owned()),
        }
    }
    words
}

/// Breaks a paragraph into lines: the first begins with `first`, the others with `rest`.
fn wrapped(first: &str, rest: &str, paragraph: &str) -> String {
    let (mut lines, mut line, mut is_empty) = (String::new(), first.to_owned(), true);
    for word in words(paragraph) {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > LINE {
            lines += &format!("{}\n", line.trim_end());
            (line, is_empty) = (rest.to_owned(), true);
        }
        if !is_empty {
            line.push(' ');
        }
        line += &word;
        is_empty = false;
    }
    lines + &format!("{}\n", line.trim_end())
}
