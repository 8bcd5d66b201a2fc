//! The scope of the code that is being lowered.

use crate::ir::{Label, MachineId, Place, Var};

/// A function, action, parser or control that is being inlined.
pub struct Scope {
    /// The instance of the parser or control.
    pub unit: usize,
    /// The places of its variables.
    pub frame: Vec<Place>,
    /// The places of the variables of the function or action.
    pub locals: Vec<Place>,
    /// Target of `return`, and the variable for the returned value.
    pub returns: Label,
    pub result: Option<Place>,
    /// Target of `exit` and parser errors, and the variable that tells the enclosing code of them.
    pub exit: Label,
    pub exiting: Option<Var>,
    pub exits: bool,
    /// Targets of `break` and `continue`.
    pub loops: Vec<(Label, Label)>,
    /// The machine of the parser's states.
    pub machine: Option<MachineId>,
}

impl Scope {
    /// A scope without variables, of code that `return` and `exit` leave by a jump to `end`.
    pub fn new(end: Label) -> Self {
        Scope {
            unit: 0,
            frame: Vec::new(),
            locals: Vec::new(),
            returns: end,
            result: None,
            exit: end,
            exiting: None,
            exits: false,
            loops: Vec::new(),
            machine: None,
        }
    }
}
