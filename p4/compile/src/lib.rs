//! P4 programs for the v1model architecture: read, checked, interpreted, compiled to C and tested with packets.
//!
//! A program passes through these rooms: the preprocessor makes one sequence of tokens of files and macros (`source`), the
//! parser a syntax tree (`syntax`), the checker a typed tree (`check`, `tree`). The reference interpreter runs that
//! (`interpret`), and test files drive it (`stf`). The typed tree is lowered to an intermediate representation (`lower`, `ir`),
//! which is made simpler (`optimise`) and written as C (`emit`); the system's compiler makes a shared object of that (`compile`),
//! and it runs in a process of its own (`run`), with a runtime in C (folder `runtime`), is measured (`bench`), or runs on ports (`serve`)
//! and is controlled (`control`), also by P4Runtime (`controller`). The declarations that programs include
//! are built in (`prelude`).
#![forbid(unsafe_code)]

mod bench;
mod check;
pub mod command_line;
mod compile;
mod compile_command;
mod control;
mod controller;
mod diagnostics;
mod emit;
mod interpret;
mod ir;
mod load;
mod lower;
mod optimise;
mod p4info;
mod prelude;
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

/// What checking a text gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Number of errors.
    pub errors: usize,
    /// Errors and warnings with excerpts, without colours.
    pub report: String,
}

/// Checks the text of a program; `core.p4` and `v1model.p4` can be included, other files below the working directory.
///
/// # Errors
///
/// When there is no memory for the stack of the compiler, or it fails, which is a defect.
pub fn check_text(text: &str) -> io::Result<Checked> {
    load::on_deep_stack(|| {
        let loaded = load::text_of(Path::new("program.p4"), text.into(), &[]);
        Checked { errors: loaded.diagnostics.errors(), report: loaded.diagnostics.render(&loaded.sources) }
    })
}
