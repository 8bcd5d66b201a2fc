//! P4 programs for the v1model architecture: checked, interpreted, compiled to C, run and tested with packets.
//!
//! The compiler is a pipeline. The preprocessor turns files and macros into one sequence of tokens (`preprocess`),
//! the parser into a syntax tree (`syntax`), and the checker into a typed tree (`check`, `tree`). The reference
//! interpreter runs the typed tree (`interpret`), and test files drive it (`stf`). The typed tree is lowered to an
//! intermediate representation (`lower`, `ir`), simplified (`optimise`; `passes` lists the steps) and emitted as C
//! code (`emit`); the system's C compiler turns that into a shared object (`compile`). Compiled programs use a
//! runtime in C (folder `runtime`). They are tested in a separate process (`run`), measured (`bench`), or run on
//! ports (`serve`) and controlled (`control`), also by P4Runtime (`controller`). The standard include files are built
//! in (`prelude`).
//!
//! ```
//! let checked = namehop_p4::check_text("const bit<8> WIDTH = missing;")?;
//! assert!(checked.errors > 0);
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

mod bench;
mod check;
pub mod command_line;
mod common;
mod compile;
mod compile_command;
mod control;
mod controller;
mod describe;
mod diagnostics;
mod emit;
mod entry_text;
mod interpret;
mod ir;
mod load;
mod lower;
mod optimise;
mod p4info;
mod passes;
mod prelude;
mod preprocess;
mod run;
mod serve;
mod source;
mod stf;
mod syntax;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod tests;
mod tree;
mod types;
mod value;

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
