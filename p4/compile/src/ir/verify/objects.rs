//! The rules of tables and other objects.

use super::{Check, Fault, Invalid, Verifier};
use crate::ir::{Id, Table, TableId, Var};

/// Maximum number of actions of a table: its lookups give the number of an action in 8 bits, and 255 for none.
const MOST_ACTIONS: usize = 255;

impl Verifier<'_> {
    /// Checks that the variables of a packet are declared, and that all objects refer to existing ones.
    pub(super) fn objects(&self) -> Result<(), Box<Invalid>> {
        let program = self.program;
        for variable in Var::OF_PACKET {
            self.declared(variable).map_err(|fault| self.invalid("the variables of a packet".into(), fault))?;
        }
        for (number, table) in program.tables.enumerated() {
            self.table(number, table).map_err(|fault| self.invalid(format!("table {}", table.path), fault))?;
        }
        for counter in &program.counters {
            let check = counter.table.map_or(Ok(()), |table| self.table_exists(table));
            check.map_err(|fault| self.invalid(format!("counter {}", counter.path), fault))?;
        }
        for meter in &program.meters {
            let check = meter.table.map_or(Ok(()), |table| self.table_exists(table));
            check.map_err(|fault| self.invalid(format!("meter {}", meter.path), fault))?;
        }
        Ok(())
    }

    fn table(&self, number: TableId, table: &Table) -> Check {
        let program = self.program;
        if table.actions.len() > MOST_ACTIONS {
            let (expected, found) = (MOST_ACTIONS, table.actions.len());
            return Err(Fault::Count { what: "actions of the table, at most", expected, found });
        }
        if let Some(profile) = table.profile {
            self.known("action profile", profile.index(), program.profiles.len())?;
        }
        if let Some(counter) = table.cells.counter {
            self.known("counter", counter.index(), program.counters.len())?;
            self.belongs("direct counter", counter.index(), program.counters[counter].table, number)?;
        }
        if let Some(meter) = table.cells.meter {
            self.known("meter", meter.index(), program.meters.len())?;
            self.belongs("direct meter", meter.index(), program.meters[meter].table, number)?;
        }
        if let Some(members) = table.members {
            self.table_exists(members)?;
            self.belongs("table of members", members.index(), program.tables[members].members_of, number)?;
            let (expected, found) = (table.actions.len().saturating_sub(1), program.tables[members].actions.len());
            if expected != found {
                return Err(Fault::Count { what: "actions of the table of members", expected, found });
            }
        }
        table.members_of.map_or(Ok(()), |main| self.table_exists(main))
    }

    fn table_exists(&self, table: TableId) -> Check {
        self.known("table", table.index(), self.program.tables.len())
    }

    /// Checks that an object which belongs to one table belongs to this one.
    fn belongs(&self, kind: &'static str, number: usize, of: Option<TableId>, table: TableId) -> Check {
        if of == Some(table) { Ok(()) } else { Err(Fault::NoObject { kind, number }) }
    }
}
