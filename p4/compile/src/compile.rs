//! From a checked program to C.

use std::fmt::Display;

use namehop_p4_lang::interpret::Switch;
use namehop_p4_lang::source::Span;
use namehop_p4_lang::tree::Program;
use namehop_p4runtime::info::P4Info;

use crate::describe::describe;
use crate::emit::quote::Literal;
use crate::emit::{self, Emitted, Options};
use crate::ir;
use crate::lower::Refusal;
use crate::passes::{self, Failure, Middle};

/// A program compiled to C, with the intermediate representation that it was made from.
pub struct Compiled {
    /// The program in the intermediate representation, after all passes.
    pub ir: ir::Program,
    /// The program as one part, if packets pass it without copies or repetition.
    pub fused: Option<ir::Fused>,
    /// The generated C code.
    pub emitted: Emitted,
    /// The objects that controllers can access through P4Runtime.
    pub p4info: P4Info,
}

/// Lowers and optimizes a program and generates C code.
pub fn compile(program: &mut Program, title: &str, options: &Options) -> Result<Compiled, Failure> {
    let Middle { program: ir, fused } = passes::run(program, &mut |_, _, _| {})?;
    let refusal = |error: &dyn Display| Refusal { message: error.to_string(), span: Span::default() };
    let switch = Switch::new(program).map_err(|error| refusal(&error))?;
    let mut emitted = emit::emit(title, &program.types, &ir, fused.as_ref(), &switch, options);
    let description = describe(program, &switch, &ir, title).map_err(|error| refusal(&error))?;
    let p4info = description.p4info().map_err(|error| refusal(&error))?;
    let description = serde_json::to_string(&description).unwrap_or_default();
    emitted.text += &format!("\nconst char namehop_p4_description[] = {};\n", Literal::of(&description));
    Ok(Compiled { ir, fused, emitted, p4info })
}
