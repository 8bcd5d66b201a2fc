//! The preprocessor: include files, macros, and conditions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostics::Diagnostics;
use crate::prelude;
use crate::source::{Sources, Span};
use crate::syntax::lexer::Lexer;
use crate::syntax::token::{Token, TokenKind};

mod condition;
mod expand;

/// Maximum nesting depth of include files.
const MAX_INCLUDES: usize = 64;
/// Maximum number of tokens after macro expansion.
const MAX_TOKENS: usize = 4_000_000;
/// Maximum size of a file, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// A macro, as defined by `#define`.
#[derive(Clone)]
pub struct Macro {
    /// The parameters of a function-like macro.
    parameters: Option<Vec<Arc<str>>>,
    body: Vec<Token>,
}

/// Turns a program into one sequence of tokens.
pub struct Preprocessor<'a> {
    sources: &'a mut Sources,
    diagnostics: &'a mut Diagnostics,
    include_paths: &'a [PathBuf],
    macros: HashMap<Arc<str>, Macro>,
    /// The files that are being read, the innermost last.
    open: Vec<PathBuf>,
    output: Vec<Token>,
    /// Number of tokens that macros may still produce.
    budget: usize,
    overflowed: bool,
}

/// State of an `#if`.
struct Branch {
    /// The enclosing part is kept.
    outer: bool,
    /// The current part is kept, and so are all enclosing ones.
    active: bool,
    /// A part of this `#if` has already been kept.
    taken: bool,
    /// `#else` has been seen.
    last: bool,
    start: Span,
}

/// True if tokens are kept inside these branches, the innermost last.
fn is_active(branches: &[Branch]) -> bool {
    branches.last().is_none_or(|branch| branch.active)
}

impl<'a> Preprocessor<'a> {
    pub fn new(sources: &'a mut Sources, diagnostics: &'a mut Diagnostics, include_paths: &'a [PathBuf]) -> Self {
        Preprocessor {
            sources,
            diagnostics,
            include_paths,
            macros: HashMap::new(),
            open: Vec::new(),
            output: Vec::new(),
            budget: MAX_TOKENS,
            overflowed: false,
        }
    }

    /// Reads a program that starts with `text`. `name` is used in messages and to find include files.
    pub fn run(mut self, name: &Path, text: Arc<str>) -> Vec<Token> {
        self.file(name.to_path_buf(), name.display().to_string(), text);
        let span = self.output.last().map_or(Span::default(), |token| token.span);
        let span = Span { start: span.end, ..span };
        self.output.push(Token { kind: TokenKind::End, span, line_start: true, joined: false, painted: false });
        self.output
    }

    fn file(&mut self, path: PathBuf, name: String, text: Arc<str>) {
        let id = self.sources.add(name, text.clone());
        self.open.push(path);
        let mut lexer = Lexer::new(id, &text);
        let mut branches: Vec<Branch> = Vec::new();
        // Tokens between two directives. They are expanded together, because macro arguments may span lines.
        let mut pending = Vec::new();
        loop {
            let token = lexer.next();
            if token.kind == TokenKind::End {
                break;
            }
            if token.line_start && token.is_sign("#") {
                let before = std::mem::take(&mut pending);
                self.expand_into_output(before);
                self.directive(&mut lexer, token.span, &mut branches);
            } else if is_active(&branches) {
                pending.push(token);
            }
            if self.overflowed {
                break;
            }
        }
        self.expand_into_output(pending);
        if let Some(branch) = branches.last() {
            self.diagnostics.error("preprocessor", branch.start, "an #if without #endif");
        }
        self.open.pop();
    }

    fn expand_into_output(&mut self, tokens: Vec<Token>) {
        let expanded = self.expand(tokens, 0);
        self.output.extend(expanded);
    }

    fn directive(&mut self, lexer: &mut Lexer<'_>, start: Span, branches: &mut Vec<Branch>) {
        let mut line = Vec::new();
        let mut ahead = lexer.clone();
        let first = ahead.next();
        if first.line_start || first.kind == TokenKind::End {
            return;
        }
        *lexer = ahead;
        let word = first.identifier().cloned().unwrap_or_else(|| "".into());
        let span = start.to(first.span);
        let active = is_active(branches);
        if matches!(&*word, "error" | "warning" | "pragma" | "line") || (!active && !condition_word(&word)) {
            let text = lexer.rest_of_line();
            match &*word {
                "error" if active => drop(self.diagnostics.error("preprocessor", span, format!("#error {text}"))),
                "warning" if active => drop(self.diagnostics.warning("preprocessor", span, format!("#warning {text}"))),
                _ => {}
            }
            return;
        }
        loop {
            let mut ahead = lexer.clone();
            let token = ahead.next();
            if token.line_start || token.kind == TokenKind::End {
                break;
            }
            *lexer = ahead;
            line.push(token);
        }
        match &*word {
            "define" => self.define(span, line),
            "undef" => match line.first().and_then(Token::identifier) {
                Some(name) => drop(self.macros.remove(name)),
                None => drop(self.diagnostics.error("preprocessor", span, "#undef needs a name")),
            },
            "include" => self.include(span, line),
            "if" | "ifdef" | "ifndef" => {
                let value = active && self.test(&word, span, line);
                branches.push(Branch { outer: active, active: value, taken: value, last: false, start: span });
            }
            "elif" | "else" => {
                let Some((outer, taken)) = branches.last().map(|branch| (branch.outer, branch.taken)) else {
                    self.diagnostics.error("preprocessor", span, format!("#{word} without #if"));
                    return;
                };
                if branches.last().is_some_and(|branch| branch.last) {
                    self.diagnostics.error("preprocessor", span, format!("#{word} after #else"));
                }
                let value = outer && !taken && (&*word == "else" || self.test("if", span, line));
                if let Some(branch) = branches.last_mut() {
                    branch.active = value;
                    branch.taken |= value;
                    branch.last |= &*word == "else";
                }
            }
            "endif" => {
                if branches.pop().is_none() {
                    self.diagnostics.error("preprocessor", span, "#endif without #if");
                }
            }
            _ => {
                self.diagnostics.error("preprocessor", span, format!("unknown directive #{word}")).help(
                    "supported: #include, #define, #undef, #if, #ifdef, #ifndef, #elif, #else, #endif and #error",
                );
            }
        }
    }

    fn test(&mut self, word: &str, span: Span, line: Vec<Token>) -> bool {
        if word == "if" {
            return self.condition(span, line);
        }
        let Some(name) = line.first().and_then(Token::identifier) else {
            self.diagnostics.error("preprocessor", span, format!("#{word} needs a name"));
            return false;
        };
        self.macros.contains_key(name) == (word == "ifdef")
    }

    fn define(&mut self, span: Span, line: Vec<Token>) {
        let mut tokens = line.into_iter().peekable();
        let Some(name) = tokens.next().and_then(|token| token.identifier().cloned()) else {
            self.diagnostics.error("preprocessor", span, "#define needs a name");
            return;
        };
        let mut parameters = None;
        if tokens.peek().is_some_and(|token| token.joined && token.is_sign("(")) {
            tokens.next();
            let mut names = Vec::new();
            loop {
                match tokens.next() {
                    Some(token) if token.is_sign(")") => break,
                    Some(token) if token.is_sign(",") => {}
                    Some(Token { kind: TokenKind::Identifier(name), .. }) => names.push(name),
                    _ => {
                        self.diagnostics.error(
                            "preprocessor",
                            span,
                            format!("the parameters of macro {name} must be names"),
                        );
                        return;
                    }
                }
            }
            parameters = Some(names);
        }
        self.macros.insert(name, Macro { parameters, body: tokens.collect() });
    }

    fn include(&mut self, span: Span, line: Vec<Token>) {
        let line =
            if line.first().is_some_and(|token| token.identifier().is_some()) { self.expand(line, 0) } else { line };
        let (wanted, system) = match line.first() {
            Some(Token { kind: TokenKind::String(name), .. }) => (name.to_string(), false),
            Some(open) if open.is_sign("<") => {
                let Some(close) = line.iter().find(|token| token.is_sign(">")) else {
                    self.diagnostics.error("preprocessor", span, "#include <… without '>'");
                    return;
                };
                let between = Span { file: open.span.file, start: open.span.end, end: close.span.start };
                (self.sources.text(between).to_owned(), true)
            }
            _ => {
                self.diagnostics.error("preprocessor", span, "#include needs \"FILE\" or <FILE>");
                return;
            }
        };
        let whole = line.last().map_or(span, |last| span.to(last.span));
        if self.open.len() >= MAX_INCLUDES {
            self.diagnostics.error("include", whole, format!("includes are nested more than {MAX_INCLUDES} deep"));
            return;
        }
        let beside = self.open.last().and_then(|path| path.parent()).map(|folder| folder.join(&wanted));
        let candidates: Vec<PathBuf> = (if system { None } else { beside.clone() })
            .into_iter()
            .chain(self.include_paths.iter().map(|folder| folder.join(&wanted)))
            .collect();
        for path in candidates {
            if !path.is_file() {
                continue;
            }
            if self.open.iter().any(|open| same_file(open, &path)) && !self.guarded(&path) {
                self.diagnostics.error("include", whole, format!("{} includes itself", path.display()));
                return;
            }
            match read(&path) {
                Ok(text) => self.file(path.clone(), path.display().to_string(), text),
                Err(error) => {
                    self.diagnostics.error("include", whole, format!("cannot read {}: {error}", path.display()));
                }
            }
            return;
        }
        // Built-in files replace the architecture's files; each is read only once.
        let base = Path::new(&wanted).file_name().and_then(|name| name.to_str()).unwrap_or("");
        if let Some(text) = prelude::file(base) {
            if !self.sources.files().iter().any(|file| file.name == prelude::name(base)) {
                self.file(PathBuf::from(prelude::name(base)), prelude::name(base), text.into());
            }
            return;
        }
        self.diagnostics
            .error("include", whole, format!("cannot find the file {wanted}"))
            .help("core.p4 and v1model.p4 are built in; add other folders with --include FOLDER");
    }

    /// True if a file that is already open starts with an include guard that is defined by now, so that including it
    /// again adds nothing.
    fn guarded(&self, path: &Path) -> bool {
        let Ok(text) = read(path) else { return false };
        let mut lexer = Lexer::new(0, &text);
        let (hash, word, name) = (lexer.next(), lexer.next(), lexer.next());
        hash.is_sign("#")
            && word.is_word("ifndef")
            && name.identifier().is_some_and(|name| self.macros.contains_key(name))
    }
}

fn condition_word(word: &str) -> bool {
    matches!(word, "if" | "ifdef" | "ifndef" | "elif" | "else" | "endif")
}

fn same_file(left: &Path, right: &Path) -> bool {
    match (left.canonicalize(), right.canonicalize()) {
        (Ok(left), Ok(right)) => left == right,
        _ => left == right,
    }
}

/// Reads a file of limited size as text.
pub fn read(path: &Path) -> Result<Arc<str>, String> {
    let length = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > MAX_FILE {
        return Err(format!("it has {length} bytes, more than the limit of {MAX_FILE}"));
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map(Into::into).map_err(|_| "it is not UTF-8 text".into())
}
