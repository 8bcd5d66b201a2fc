//! What names mean while a parser, control, function or action is lowered.

use crate::ir::{Label, Place, Var};

/// A function, action, parser or control that is being written out.
#[derive(Clone, Default)]
pub struct Scope {
    /// The instance of the parser or control.
    pub unit: usize,
    /// Where its variables are.
    pub frame: Vec<Place>,
    /// Where the variables of the function or action are.
    pub locals: Vec<Place>,
    /// Where `return` goes, and the variable for its value.
    pub returns: Label,
    pub result: Option<Place>,
    /// Where `exit` and errors of parsers go, and the variable that says so to what is around.
    pub exit: Label,
    pub exiting: Option<Var>,
    pub exits: bool,
    /// Where `break` and `continue` go.
    pub loops: Vec<(Label, Label)>,
    /// The machine of the parser's states.
    pub machine: usize,
}
