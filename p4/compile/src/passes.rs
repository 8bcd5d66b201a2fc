//! The passes of the middle of the compiler, from the typed tree to what is emitted as C, and their driver.

use std::fmt::Write;

use namehop_p4_lang::source::Span;
use namehop_p4_lang::tree;
use namehop_p4_lang::types::Types;

use crate::ir::{self, Fused, Program};
use crate::lower::{self, Refusal};
use crate::optimise::{fold, forward, fuse, hashes, in_place, live, paths, split, unused};

/// A pass.
pub struct Pass {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, for help texts.
    pub about: &'static str,
    work: Work,
}

/// What a pass works on.
enum Work {
    /// Makes the program of six parts from the typed tree.
    Lower(fn(&mut tree::Program) -> Result<Program, Refusal>),
    /// Changes the program of six parts.
    Parts(fn(&mut Program, &Types)),
    /// Makes the program of one part. `None` if packets do not go straight through; the passes behind then do not run.
    Fuse(fn(&Program, &Types) -> Option<Fused>),
    /// Changes the program of one part.
    Fused(fn(&mut Fused, &Types)),
}

const fn pass(name: &'static str, about: &'static str, work: Work) -> Pass {
    Pass { name, about, work }
}

/// All passes, in the order in which they run.
pub const PASSES: &[Pass] = &[
    pass("lower", "Makes the program of six parts from the typed tree; inlines all calls", Work::Lower(lower::lower)),
    pass("fold", "Evaluates constants, and removes branches that are never taken", Work::Parts(fold::fold)),
    pass(
        "unused",
        "Removes variables that are written and never read",
        Work::Parts(|program, _| unused::remove(program)),
    ),
    pass("hashes", "Shares hashes between lookups", Work::Parts(|program, _| hashes::share(program))),
    pass("fuse", "Makes the program of one part, if packets go straight through", Work::Fuse(fuse::fuse)),
    pass("split", "Splits structs and headers into variables", Work::Fused(split::split)),
    pass("in-place", "Keeps headers in the packet", Work::Fused(in_place::locate)),
    pass(
        "forward",
        "Propagates copies, and computes checksums from values",
        Work::Fused(|fused, types| forward::forward(&mut fused.program, types)),
    ),
    pass("paths", "Separates the paths through the parser, and propagates known values", Work::Fused(paths::separate)),
    pass("fused-hashes", "Shares hashes between lookups", Work::Fused(|fused, _| hashes::share(&mut fused.program))),
    pass(
        "live",
        "Removes dead assignments, and finds what packets keep across lookups",
        Work::Fused(|fused, _| live::keep_what_lives(fused)),
    ),
];

/// The result of the passes.
pub struct Middle {
    /// The program of six parts.
    pub program: Program,
    /// The program as one part, if packets pass it without copies or repetition.
    pub fused: Option<Fused>,
}

/// The program after a pass, in the form on which the pass works.
#[derive(Clone, Copy)]
pub enum After<'a> {
    /// The program of six parts.
    Parts(&'a Program),
    /// The program of one part.
    Fused(&'a Fused),
    /// The pass did not run, because there is no program of one part.
    Skipped,
}

/// Why there is no compiled program.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The program cannot be compiled.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The compiler has a bug.
    #[error(transparent)]
    Invalid(#[from] Box<ir::Invalid>),
}

impl Failure {
    /// The part of the source that cannot be compiled, if it is known.
    pub fn span(&self) -> Span {
        match self {
            Failure::Refused(refusal) => refusal.span,
            Failure::Invalid(_) => Span::default(),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Failure::Refused(refusal)
    }
}

/// The result of each pass is verified in debug builds and in tests.
const VERIFY: bool = cfg!(any(debug_assertions, test, feature = "testing"));

impl After<'_> {
    fn verify(self, types: &Types, pass: &'static str) -> Result<(), Box<ir::Invalid>> {
        match self {
            After::Parts(program) => ir::verify(program, types, pass),
            After::Fused(fused) => ir::verify_fused(fused, types, pass),
            After::Skipped => Ok(()),
        }
    }
}

/// Runs all passes. Calls a function after each of them.
///
/// # Errors
/// Fails if the program cannot be compiled, or if a pass makes an invalid program.
pub fn run(source: &mut tree::Program, each: &mut dyn FnMut(&Pass, After<'_>, &Types)) -> Result<Middle, Failure> {
    let mut program = Program::default();
    let mut fused = None;
    for pass in PASSES {
        let after = match &pass.work {
            Work::Lower(work) => {
                program = work(source)?;
                After::Parts(&program)
            }
            Work::Parts(work) => {
                work(&mut program, &source.types);
                After::Parts(&program)
            }
            Work::Fuse(work) => {
                fused = work(&program, &source.types);
                fused.as_ref().map_or(After::Skipped, After::Fused)
            }
            Work::Fused(work) => match &mut fused {
                Some(fused) => {
                    work(fused, &source.types);
                    After::Fused(fused)
                }
                None => After::Skipped,
            },
        };
        each(pass, after, &source.types);
        if VERIFY {
            after.verify(&source.types, pass.name)?;
        }
    }
    Ok(Middle { program, fused })
}

/// The passes after which the program is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dump {
    /// After every pass.
    All,
    /// After the pass with this name.
    After(String),
}

/// Runs all passes and appends the program as text after some of them, with a heading for each.
///
/// # Errors
/// Fails as `run` does. The text then ends with the last pass that ran, which is the one that made an invalid program.
pub fn dump(source: &mut tree::Program, wanted: &Dump, text: &mut String) -> Result<(), Failure> {
    let middle = run(source, &mut |pass, after, types| {
        if !matches!(wanted, Dump::After(name) if name != pass.name) {
            let _ = writeln!(text, "# after {}", pass.name);
            *text += &match after {
                After::Parts(program) => program.show(types),
                After::Fused(fused) => fused.program.show_parts(types),
                After::Skipped => "# did not run: the program cannot be one part\n".to_owned(),
            };
        }
    });
    middle.map(drop)
}
