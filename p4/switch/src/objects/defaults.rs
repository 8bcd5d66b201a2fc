//! Default actions of a running program: the actions for keys that match no entry.

use namehop_p4_compile::layout::{self, Cells};
use namehop_p4_lang::value::Value;

use super::error::ObjectError;
use super::state::{Notes, State};

/// Index of a default action in the table's list, and its action data.
pub type DefaultAction = (u32, Vec<u8>);

/// The default action of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DefaultEntry {
    now: Option<DefaultAction>,
    /// The program's own default action.
    initial: Option<DefaultAction>,
    notes: Notes,
}

impl State {
    /// Records the default actions that the tables already have.
    pub fn with_defaults(mut self, list: Vec<(usize, u32, Vec<u8>)>) -> Self {
        for (table, action, data) in list {
            if let Some(known) = self.defaults.get_mut(table) {
                known.now = Some((action, data));
                known.initial.clone_from(&known.now);
            }
        }
        self
    }

    /// The default action of a table, and the controller's metadata of it.
    pub fn default(&self, table: usize) -> Option<(&DefaultAction, &Notes)> {
        let known = self.defaults.get(table)?;
        Some((known.now.as_ref()?, &known.notes))
    }

    /// Sets the controller's metadata of a table's default action.
    pub fn set_default_notes(&mut self, table: usize, notes: Notes) {
        self.defaults[table].notes = notes;
    }

    /// Sets the default action of a table.
    pub fn put_default(&mut self, table: usize, action: u32, data: Vec<u8>) -> Result<(), ObjectError> {
        self.live.set_default(table, action, &data)?;
        self.defaults[table].now = Some((action, data));
        Ok(())
    }

    /// Restores the program's own default action, without metadata.
    pub fn reset_default(&mut self, table: usize) -> Result<(), ObjectError> {
        let known = &self.defaults[table];
        if let Some((action, data)) = known.initial.clone().filter(|_| known.now != known.initial) {
            self.put_default(table, action, data)?;
        }
        self.defaults[table].notes = Notes::default();
        Ok(())
    }
}

/// The action data of a default action, which has no cell.
pub fn default_data(table: &layout::Table, action: usize, values: &[Value]) -> Vec<u8> {
    layout::pack_values(table, action, Cells::NONE, values)
}
