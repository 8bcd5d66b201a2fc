//! Passes over the intermediate representation.

mod fold;
mod forward;
pub mod fuse;
mod hashes;
mod in_place;
mod live;
mod paths;
mod settle;
mod split;
mod unused;
pub mod visit;

use crate::ir::Program;
use crate::types::Types;

/// Evaluates what is known, and removes what has no effect.
pub fn optimise(program: &mut Program, types: &Types) {
    fold::fold(program, types);
    unused::remove(program);
    hashes::share(program);
}
