//! From a file to a checked program.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use crate::check;
use crate::diagnostics::Diagnostics;
use crate::preprocess::{self, Preprocessor};
use crate::source::Sources;
use crate::syntax::parser;
use crate::tree::Program;

/// Stack size for the passes over a program, in bytes. The parser limits the depth of trees, so this is enough; unused
/// stack takes no memory.
const STACK: usize = 512 << 20;

/// A loaded program with its diagnostics.
pub struct Loaded {
    /// The texts that were read.
    pub sources: Sources,
    /// Errors and warnings.
    pub diagnostics: Diagnostics,
    /// `None` if there are errors.
    pub program: Option<Program>,
}

/// Reads and checks a file. The error says why it cannot be read.
pub fn file(path: &Path, include: &[PathBuf]) -> Result<Loaded, String> {
    let text = preprocess::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(text_of(path, text, include))
}

/// Checks a text. `name` is used in messages.
pub fn text_of(name: &Path, text: Arc<str>, include: &[PathBuf]) -> Loaded {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let tokens = Preprocessor::new(&mut sources, &mut diagnostics, include).run(name, text);
    let tree = parser::parse(&tokens, &mut diagnostics);
    let mut program = None;
    // After a syntax error, names are missing, and the checker would report only consequences of that.
    if diagnostics.errors() == 0 {
        let checked = check::check(&tree, &mut diagnostics);
        program = Some(checked).filter(|_| diagnostics.errors() == 0);
    }
    Loaded { sources, diagnostics, program }
}

/// Runs `work` on a stack that is large enough for deeply nested programs.
pub fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let handle = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work)?;
        handle.join().map_err(|_| io::Error::other("the compiler panicked; please report this program"))
    })
}
