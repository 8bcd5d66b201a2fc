//! Errors and warnings: collected during compilation, shown with source excerpts or as JSON.
//!
//! Excerpts are drawn by codespan-reporting: it needs only two small crates, accepts byte positions, and writes with or
//! without colours.

use std::io::{self, Write};
use std::ops::Range;

use codespan_reporting::diagnostic::{Diagnostic as Report, Label};
use codespan_reporting::files::{self, Files};
use codespan_reporting::term::termcolor::{ColorChoice, NoColor, StandardStream};
use codespan_reporting::term::{self, Config};
use serde::Serialize;

use crate::source::{Sources, Span};

/// Maximum number of errors that are kept. Later ones are mostly consequences of earlier ones.
const MAX_ERRORS: usize = 100;
/// Maximum number of warnings that are kept.
const MAX_WARNINGS: usize = 100;

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The program cannot be used.
    Error,
    /// The program can be used, but may not do what its author wants.
    Warning,
}

/// One error or warning.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Whether it is an error or a warning.
    pub severity: Severity,
    /// Short name of the kind of error; stable across versions.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// The part of the source that it refers to.
    pub span: Span,
    /// A remedy.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Adds a remedy.
    pub fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }
}

/// The diagnostics found so far.
#[derive(Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
    /// Holds a diagnostic beyond the limit, so that callers need not check for it.
    spill: Option<Box<Diagnostic>>,
}

impl Diagnostics {
    /// Adds an error.
    pub fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.errors += 1;
        self.push(Severity::Error, code, span, message.into())
    }

    /// Adds a warning.
    pub fn warning(&mut self, code: &'static str, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.warnings += 1;
        self.push(Severity::Warning, code, span, message.into())
    }

    fn push(&mut self, severity: Severity, code: &'static str, span: Span, message: String) -> &mut Diagnostic {
        let new = Diagnostic { severity, code, message, span, help: None };
        let (count, limit) = match severity {
            Severity::Error => (self.errors, MAX_ERRORS),
            Severity::Warning => (self.warnings, MAX_WARNINGS),
        };
        if count > limit {
            return self.spill.insert(Box::new(new));
        }
        self.list.push(new);
        let last = self.list.len() - 1;
        &mut self.list[last]
    }

    /// Number of errors, also beyond the limit.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Number of warnings, also beyond the limit.
    pub fn warnings(&self) -> usize {
        self.warnings
    }

    /// True if the limit on errors is reached and compilation should stop.
    pub fn is_full(&self) -> bool {
        self.errors >= MAX_ERRORS
    }

    /// Prints all diagnostics with excerpts to the standard error output, with colours if `colours` is true.
    pub fn print(&self, sources: &Sources, colours: bool) -> io::Result<()> {
        let choice = if colours { ColorChoice::Always } else { ColorChoice::Never };
        let stream = StandardStream::stderr(choice);
        let mut stream = stream.lock();
        for diagnostic in &self.list {
            let report = report(diagnostic);
            term::emit_to_write_style(&mut stream, &Config::default(), sources, &report).map_err(other)?;
        }
        stream.flush()
    }

    /// All diagnostics as text without colours.
    pub fn render(&self, sources: &Sources) -> String {
        let mut text = NoColor::new(Vec::new());
        for diagnostic in &self.list {
            // Writing to memory fails only for positions outside of files; such diagnostics are omitted.
            let _ = term::emit_to_write_style(&mut text, &Config::default(), sources, &report(diagnostic));
        }
        String::from_utf8_lossy(&text.into_inner()).into_owned()
    }

    /// All diagnostics in the form for `--json`.
    pub fn json(&self, sources: &Sources) -> Vec<JsonDiagnostic> {
        self.list
            .iter()
            .map(|diagnostic| {
                let (line, column) = sources.line_and_column(diagnostic.span);
                JsonDiagnostic {
                    severity: diagnostic.severity,
                    code: diagnostic.code,
                    message: diagnostic.message.clone(),
                    file: sources.files().get(diagnostic.span.file as usize).map_or(String::new(), |f| f.name.clone()),
                    line,
                    column,
                    text: sources.text(diagnostic.span).chars().take(200).collect(),
                    help: diagnostic.help.clone(),
                }
            })
            .collect()
    }
}

/// A diagnostic in the form of `--json`.
#[derive(Serialize)]
pub struct JsonDiagnostic {
    severity: Severity,
    code: &'static str,
    message: String,
    file: String,
    line: usize,
    column: usize,
    text: String,
    help: Option<String>,
}

fn other(error: files::Error) -> io::Error {
    io::Error::other(error.to_string())
}

fn range(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

fn report(diagnostic: &Diagnostic) -> Report<usize> {
    let report = match diagnostic.severity {
        Severity::Error => Report::error(),
        Severity::Warning => Report::warning(),
    };
    let labels = vec![Label::primary(diagnostic.span.file as usize, range(diagnostic.span))];
    let notes = diagnostic.help.iter().map(|help| format!("help: {help}")).collect();
    report.with_code(diagnostic.code).with_message(&diagnostic.message).with_labels(labels).with_notes(notes)
}

impl<'a> Files<'a> for Sources {
    type FileId = usize;
    type Name = &'a str;
    type Source = &'a str;

    fn name(&'a self, id: usize) -> Result<&'a str, files::Error> {
        self.files().get(id).map(|file| file.name.as_str()).ok_or(files::Error::FileMissing)
    }

    fn source(&'a self, id: usize) -> Result<&'a str, files::Error> {
        self.files().get(id).map(|file| &*file.text).ok_or(files::Error::FileMissing)
    }

    fn line_index(&'a self, id: usize, index: usize) -> Result<usize, files::Error> {
        let text = self.source(id)?;
        let index = index.min(text.len());
        Ok(text.as_bytes()[..index].iter().filter(|byte| **byte == b'\n').count())
    }

    fn line_range(&'a self, id: usize, line: usize) -> Result<Range<usize>, files::Error> {
        let text = self.source(id)?;
        let mut start = 0;
        for (number, content) in text.split('\n').enumerate() {
            let end = (start + content.len() + 1).min(text.len());
            if number == line {
                return Ok(start..end);
            }
            start = end;
        }
        Err(files::Error::LineTooLarge { given: line, max: text.matches('\n').count() })
    }
}
