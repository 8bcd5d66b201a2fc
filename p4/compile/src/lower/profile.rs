//! Direct counters, direct meters and idle timeouts of tables, and action profiles and selectors.
//!
//! An entry with a direct counter or meter has the number of a cell before its action data, so a direct counter is
//! accessed like an indexed one. In a table with a selector, an entry may stand for a group instead of an action. A
//! second table then holds the members of groups. Its keys are the group and one of its slots, which a hash chooses.

use namehop_p4_lang::interpret::{Object, Profile};
use namehop_p4_lang::syntax::Binary;
use namehop_p4_lang::tree::Table;
use namehop_p4_lang::types::Types;

use super::{Lower, Lowerer};
use crate::ir::{self, Apply, Cells, Expr, Id, IndexVec, Kind, Place, Sink, Statement, TableId, Var};

/// Maximum number of entries of a table with cells.
const MOST_CELLS: u64 = 1 << 24;
/// Maximum number of slots in groups.
const MOST_PLACES: u64 = 1 << 22;
/// Bits of the number of a group, and of a slot in it.
const GROUP_BITS: u32 = 32;
/// Provisional number of the first table of members, until all tables are known.
const FIRST_MEMBER_TABLE: usize = 1 << 32;
/// `MeterType.bytes`
const METER_BYTES: u64 = 1;

/// The group of a matching entry.
pub(super) struct Selected {
    group: Place,
    places: Place,
    profile: Profile,
    bodies: Vec<Vec<Statement>>,
}

impl<'p> Lowerer<'p> {
    /// Sets the direct counter and meter of a table.
    pub(super) fn cells_of(&mut self, number: TableId, table: &'p Table) -> Lower<()> {
        let size = self.table_list[number].size;
        let path = self.table_list[number].path.clone();
        let mut cells = Cells { timeout: table.support_timeout, ..Cells::default() };
        let counted = table.counter.as_ref().map(|counter| self.object(counter)).transpose()?;
        if counted.is_some_and(|object| matches!(self.switch.objects[object], Object::Counter(_))) || cells.timeout {
            let named = counted.and_then(|object| self.paths.get(&object).cloned());
            // The hidden counter for idle timeouts has no name in the program.
            let path = named.unwrap_or_else(|| format!("{path}.$used"));
            let object = counted.unwrap_or(usize::MAX);
            let counter = ir::Counter { path, object, size: size as usize, table: Some(number) };
            cells.counter = Some(self.counter_list.push(counter));
        }
        if let Some((meter, _)) = &table.meter {
            let object = self.object(meter)?;
            if matches!(self.switch.objects[object], Object::Meter(_)) {
                let path = self.paths.get(&object).cloned().unwrap_or_else(|| format!("{path}.$meter"));
                let bytes = self.switch.units.get(&object) == Some(&METER_BYTES);
                let meter = ir::Meter { path, size: size as usize, bytes, table: Some(number) };
                cells.meter = Some(self.meter_list.push(meter));
            }
        }
        if cells.are_there() && size > MOST_CELLS {
            return self.refuse(format!(
                "table {path} has counters, meters or time-outs per entry, which allow at most {MOST_CELLS} entries: \
                 reduce its 'size'"
            ));
        }
        self.table_list[number].cells = cells;
        Ok(())
    }

    /// At the start of an action: counts and meters the packet for the entry. Default actions have no cell.
    pub(super) fn use_cell(&mut self, number: TableId, table: &'p Table) -> Lower<()> {
        let cells = self.table_list[number].cells;
        let cell = Expr { kind: Kind::Argument(0), ty: self.common.index };
        if let Some(counter) = cells.counter {
            self.push(Statement::Count(counter, cell.clone()))?;
        }
        if let (Some(meter), Some((object, _))) = (cells.meter, &table.meter) {
            let object = self.object(object)?;
            let color = self.keep(Expr { kind: Kind::Meter(meter, Box::new(cell)), ty: self.common.byte })?;
            self.colors.insert(object, color);
        }
        Ok(())
    }

    /// Sets the action profile of a table, and with a selector creates the table of members.
    pub(super) fn profile_of(&mut self, number: TableId, table: &'p Table) -> Lower<()> {
        let Some(implementation) = &table.implementation else { return Ok(()) };
        let object = self.object(implementation)?;
        let Some(Profile { size, selector }) = self.switch.profiles.get(&object).copied() else { return Ok(()) };
        let size = size.clamp(1, MOST_PLACES);
        let known = self.profiles.find(|known| known.object == object);
        let profile = known.unwrap_or_else(|| {
            let path = self.paths.get(&object).cloned().unwrap_or_else(|| format!("profile_{object}"));
            self.profiles.push(ir::Profile { path, object, size, selector: selector.is_some() })
        });
        let main = &mut self.table_list[number];
        main.profile = Some(profile);
        if selector.is_none() {
            return Ok(());
        }
        let key = |name: &str| ir::Key { name: name.into(), kind: ir::Match::Exact, width: GROUP_BITS, signed: false };
        self.member_tables.push(ir::Table {
            path: format!("{}.$members", main.path),
            owner: (usize::MAX, number.index()),
            keys: vec![key("group"), key("place")],
            actions: main.actions.clone(),
            // While a group changes, it exists twice.
            size: size * 2,
            cells: Cells::default(),
            profile: None,
            members: None,
            members_of: Some(number),
        });
        main.actions.push(ir::Action { name: "group".into(), arguments: vec![GROUP_BITS, GROUP_BITS] });
        main.members = Some(TableId::new(FIRST_MEMBER_TABLE + self.member_tables.len() - 1));
        Ok(())
    }

    /// Adds the action for entries that stand for a group, and prepares the actions of group members.
    pub(super) fn group_action(
        &mut self,
        number: TableId,
        table: &'p Table,
        actions: &mut Vec<Vec<Statement>>,
    ) -> Lower<Option<Selected>> {
        if self.table_list[number].members.is_none() {
            return Ok(None);
        }
        let Some(implementation) = &table.implementation else { return Ok(None) };
        let object = self.object(implementation)?;
        let Some(profile) = self.switch.profiles.get(&object).copied() else { return Ok(None) };
        let index = self.common.index;
        let (group, places) = (self.temporary("group", index), self.temporary("places", index));
        let first = u64::from(self.table_list[number].cell_bits());
        actions.push(self.list(|lowerer| {
            lowerer.use_cell(number, table)?;
            lowerer.set(group.clone(), Expr { kind: Kind::Argument(first), ty: index })?;
            lowerer.set(places.clone(), Expr { kind: Kind::Argument(first + u64::from(GROUP_BITS)), ty: index })
        })?);
        let mut bodies = Vec::new();
        for listed in &table.actions {
            bodies.push(self.list(|lowerer| lowerer.table_action(listed, 0))?);
        }
        Ok(Some(Selected { group, places, profile, bodies }))
    }

    /// If the entry stands for a group: looks up the member that the hash of the selector keys chooses, and runs its
    /// action.
    pub(super) fn select_member(
        &mut self,
        number: TableId,
        table: &'p Table,
        selected: Selected,
        values: Vec<Expr>,
        chosen: Var,
    ) -> Lower<()> {
        let (word, index, byte) = (self.common.word, self.common.index, self.common.byte);
        let Some(members) = self.table_list[number].members else { return Ok(()) };
        let read = Expr::read(Place::variable(chosen, byte));
        let is_group = self.number(table.actions.len() as u64, byte);
        let is_group = self.binary(Binary::Equal, read, is_group, Types::BOOL);
        let Selected { group, places, profile, bodies } = selected;
        let (algorithm, width) = profile.selector.unwrap_or_default();
        let then = self.list(|lowerer| {
            lowerer.push(Statement::BeginData)?;
            for value in values {
                lowerer.append(Sink::Data, value)?;
            }
            let algorithm = lowerer.number(algorithm, word);
            let hash = Expr { kind: Kind::Hash(Box::new(algorithm)), ty: word };
            let kept = lowerer.word(if width >= 64 { u64::MAX } else { (1 << width) - 1 });
            let hash = lowerer.binary(Binary::BitAnd, hash, kept, word);
            let count = lowerer.cast(Expr::read(places), word)?;
            let place = lowerer.binary(Binary::Mod, hash, count, word);
            let place = lowerer.cast(place, index)?;
            let place = lowerer.keep(place)?;
            lowerer.push(Statement::Apply(Apply {
                table: members,
                keys: vec![Expr::read(group), place],
                hashed: 0,
                hit: None,
                chosen: Some(chosen),
                actions: bodies,
                resume: ir::Resume::default(),
            }))
        })?;
        self.push(Statement::If(is_group, then, Vec::new()))
    }
}

/// Moves the tables of members behind all others, and gives them their final numbers.
pub(super) fn number_member_tables(
    parts: &mut [ir::Part],
    tables: &mut IndexVec<TableId, ir::Table>,
    members: Vec<ir::Table>,
) {
    let first = tables.len();
    let number = |table: TableId| match table.index().checked_sub(FIRST_MEMBER_TABLE) {
        Some(member) => TableId::new(first + member),
        None => table,
    };
    for table in tables.iter_mut() {
        table.members = table.members.map(number);
    }
    tables.extend(members);
    let mut open: Vec<&mut Vec<Statement>> = parts.iter_mut().map(|part| &mut part.body).collect();
    while let Some(list) = open.pop() {
        for statement in list {
            if let Statement::Apply(apply) = statement {
                apply.table = number(apply.table);
            }
            open.extend(statement.inner_mut());
        }
    }
}
