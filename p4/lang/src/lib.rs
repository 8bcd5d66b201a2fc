//! P4 programs for the v1model architecture: checked, interpreted, and tested with packets.
//!
//! The preprocessor turns files and macros into one sequence of tokens (`preprocess`), the parser into a syntax tree
//! ([`syntax`]), and the checker into a typed tree ([`check`], [`tree`]). [`load`] does all of it. The reference
//! interpreter runs the typed tree ([`interpret`]), and test files drive it ([`stf`]). The standard include files are
//! built in ([`prelude`]).
//!
//! ```
//! let checked = namehop_p4_lang::check_text("const bit<8> WIDTH = missing;")?;
//! assert!(checked.errors > 0);
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod check;
pub mod diagnostics;
pub mod entry_text;
pub mod interpret;
pub mod load;
pub mod prelude;
mod preprocess;
pub mod source;
pub mod stf;
#[expect(missing_docs, reason = "operators are named as in the language specification")]
pub mod syntax;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
#[expect(missing_docs, reason = "nodes and their parts are named as in the language specification")]
pub mod tree;
#[expect(missing_docs, reason = "types are named as in the language specification")]
pub mod types;
pub mod value;

use std::io;
use std::path::Path;

/// Result of checking a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Number of errors.
    pub errors: usize,
    /// Errors and warnings with excerpts, without colours.
    pub report: String,
}

/// Checks the text of a program. It can include `core.p4` and `v1model.p4`, and files below the working directory.
///
/// # Errors
///
/// Fails if there is no memory for the compiler's stack, or if the compiler panics, which is a bug.
pub fn check_text(text: &str) -> io::Result<Checked> {
    load::on_deep_stack(|| {
        let loaded = load::text_of(Path::new("program.p4"), text.into(), &[]);
        Checked { errors: loaded.diagnostics.errors(), report: loaded.diagnostics.render(&loaded.sources) }
    })
}
