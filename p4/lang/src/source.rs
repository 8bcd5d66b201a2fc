//! The source texts of a program, and positions in them.

use std::sync::Arc;

/// A range of bytes of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Index of the text in [`Sources::files`].
    pub file: u32,
    /// Offset of its first byte.
    pub start: u32,
    /// Offset behind its last byte.
    pub end: u32,
}

impl Span {
    /// The span from the start of `self` to the end of `end`, or `self` alone if the two are in different files.
    pub fn to(self, end: Span) -> Span {
        if self.file == end.file && end.end >= self.start { Span { end: end.end, ..self } } else { self }
    }
}

/// One file, or one built-in file.
pub struct SourceFile {
    /// Its name in messages.
    pub name: String,
    /// Its text.
    pub text: Arc<str>,
}

/// All source texts of a program, in the order in which they were read.
#[derive(Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// Adds a text. Returns its index.
    pub fn add(&mut self, name: String, text: Arc<str>) -> u32 {
        self.files.push(SourceFile { name, text });
        (self.files.len() - 1) as u32
    }

    /// Returns all texts.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The text of a span.
    pub fn text(&self, span: Span) -> &str {
        self.files
            .get(span.file as usize)
            .and_then(|file| file.text.get(span.start as usize..span.end as usize))
            .unwrap_or("")
    }

    /// Line and column of the start of a span, counted from 1; columns count characters.
    pub fn line_and_column(&self, span: Span) -> (usize, usize) {
        let Some(before) = self.files.get(span.file as usize).and_then(|file| file.text.get(..span.start as usize))
        else {
            return (1, 1);
        };
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        (line, column)
    }
}
