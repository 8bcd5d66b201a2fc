//! Contents of the tables of a running program: changed in the program and in this copy together, one request at a
//! time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use namehop_p4_compile::description::Description;
use namehop_p4_compile::description::Identity;
use namehop_p4_compile::layout;
use namehop_p4_compile::layout::Cells;
use namehop_p4_lang::interpret::table::Match;

use super::defaults::DefaultEntry;
use super::error::ObjectError;
use super::live::Live;
use super::profiles::{Placed, Profile, Reference};
use super::rows::{Rows, identity};
use crate::program::{Change, Entry};

/// Metadata that a controller stores with an entry or a default action and reads back unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    pub metadata: Vec<u8>,
    /// Metadata in the older form of a number; 0 is none.
    pub number: u64,
}

impl Notes {
    /// True if these match the metadata of a read request; empty metadata in the request match any.
    pub fn fit(&self, asked: &Notes) -> bool {
        (asked.metadata.is_empty() || asked.metadata == self.metadata)
            && (asked.number == 0 || asked.number == self.number)
    }
}

/// Properties of an entry besides its key and action.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra {
    /// Source of its action, if it is not its own.
    pub reference: Option<Reference>,
    set: Option<Placed>,
    /// Idle timeout after which the controller is notified, in nanoseconds; 0 is none.
    pub timeout_ns: i64,
    /// Distinguishes an entry with an idle timeout from an earlier one with the same key; 0 without an idle timeout.
    pub since: u64,
    pub notes: Notes,
}

/// Free cells of a table.
#[derive(Default)]
struct FreeCells {
    /// Cells of deleted entries, the oldest first: packets in progress may still be counted in the newest.
    gone: VecDeque<u32>,
    next: u32,
}

impl FreeCells {
    /// Marks the cell of an entry as used. Unused cells with lower numbers become free.
    fn used(&mut self, cell: u32) {
        self.gone.retain(|free| *free != cell);
        self.gone.extend(self.next..cell);
        self.next = self.next.max(cell.saturating_add(1));
    }
}

/// The tables of a program and their contents.
pub struct State {
    pub description: Description,
    pub(super) live: Arc<Live>,
    pub(super) entries: Vec<Rows>,
    extras: Vec<BTreeMap<Identity, Extra>>,
    /// Number of idle timeouts set so far; the source of `Extra::since`.
    timed: u64,
    free_cells: Vec<FreeCells>,
    /// In the order of the description.
    pub profiles: Vec<Profile>,
    /// Members of value sets, in the order of the description.
    pub value_sets: Vec<Vec<Vec<Match>>>,
    pub(super) next_group: u32,
    /// The program's own entries.
    initial: Vec<(usize, Entry)>,
    /// Default actions, by table.
    pub(super) defaults: Vec<DefaultEntry>,
}

impl State {
    /// Makes the state of tables that already contain `initial`.
    pub fn new(description: Description, live: Arc<Live>, initial: Vec<(usize, Entry)>) -> Self {
        let mut entries: Vec<Rows> = description.tables.iter().map(|table| Rows::new(&table.table)).collect();
        let mut free_cells: Vec<FreeCells> = description.tables.iter().map(|_| FreeCells::default()).collect();
        for (table, entry) in &initial {
            if let Some(known) = entries.get_mut(*table) {
                known.put(&identity(entry), entry);
                if let Some(cell) = cell_of(&description.tables[*table].table.cells, entry) {
                    free_cells[*table].used(cell);
                }
            }
        }
        State {
            extras: description.tables.iter().map(|_| BTreeMap::new()).collect(),
            value_sets: description.value_sets.iter().map(|_| Vec::new()).collect(),
            profiles: description.profiles.iter().map(|_| Profile::default()).collect(),
            timed: 0,
            next_group: 0,
            defaults: vec![DefaultEntry::default(); description.tables.len()],
            description,
            live,
            entries,
            free_cells,
            initial,
        }
    }

    /// Resets tables to the program's own contents.
    pub fn reset(&mut self) -> Result<(), ObjectError> {
        for table in 0..self.entries.len() {
            let described = &self.description.tables[table];
            let cells = described.table.cells;
            if described.entries_are_const {
                let used = self.entries[table].from(0).filter_map(|(.., entry)| cell_of(&cells, &entry));
                used.for_each(|cell| self.live.clear_cell(cells, cell));
                self.reset_default(table)?;
                continue;
            }
            let mut next = 0;
            loop {
                let Some((behind, _, entry)) = self.entries[table].from(next).next() else { break };
                self.apply(table, Change::Delete, entry)?;
                next = behind;
            }
            for (_, entry) in self.initial.clone().into_iter().filter(|(place, _)| *place == table) {
                self.apply(table, Change::Insert, entry)?;
            }
            self.reset_default(table)?;
        }
        self.reset_profiles();
        for set in 0..self.value_sets.len() {
            self.set_members(set, Vec::new())?;
        }
        Ok(())
    }

    /// The extra properties of an entry, if it has any.
    pub fn extra(&self, table: usize, identity: &[u64]) -> Option<&Extra> {
        self.extras.get(table)?.get(identity)
    }

    /// Sets the timeout and metadata of an entry.
    pub fn set_extra(&mut self, table: usize, identity: &Identity, timeout_ns: i64, notes: Notes) {
        let extras = &mut self.extras[table];
        // Most entries have no extra properties; store nothing for them.
        let known = extras.remove(identity).unwrap_or_default();
        let since = match known.timeout_ns {
            _ if timeout_ns == 0 => 0,
            0 => {
                self.timed += 1;
                self.timed
            }
            _ => known.since,
        };
        let extra = Extra { timeout_ns, since, notes, ..known };
        if extra != Extra::default() {
            extras.insert(identity.clone(), extra);
        }
    }

    /// Entries of a table that have an idle timeout.
    pub fn timeouts(&self, table: usize) -> impl Iterator<Item = (&Identity, &Extra)> {
        self.extras[table].iter().filter(|(_, extra)| extra.timeout_ns > 0)
    }

    /// True if an entry cannot be changed.
    pub fn is_const(&self, table: usize, identity: &[u64]) -> bool {
        let described = &self.description.tables[table];
        described.entries_are_const || described.const_entries.contains(identity)
    }

    /// The cell of an entry, if its table has cells.
    pub fn cell(&self, table: usize, entry: &Entry) -> Option<u32> {
        cell_of(&self.description.tables[table].table.cells, entry)
    }

    /// The entry of a table with this identity.
    pub fn entry(&self, table: usize, identity: &Identity) -> Option<Entry> {
        self.entries.get(table)?.get(identity)
    }

    /// Entries of a table from a row on, each with the number of the next row. An entry that exists during the whole
    /// iteration is returned exactly once.
    pub fn entries_from(&self, table: usize, row: usize) -> impl Iterator<Item = (usize, &[u64], Entry)> {
        self.entries.get(table).into_iter().flat_map(move |entries| entries.from(row))
    }

    /// Replaces the members of a value set.
    pub fn set_members(&mut self, set: usize, members: Vec<Vec<Match>>) -> Result<(), ObjectError> {
        let described = &self.description.value_sets[set];
        if members.len() as u64 > described.size {
            return Err(ObjectError::ValueSetFull(described.path.clone(), described.size));
        }
        let words: u32 = described.fields.iter().map(|field| field.width.div_ceil(64).max(1) * 4).sum();
        let rows: Vec<u64> = members.iter().flat_map(|member| layout::pack_member(&described.fields, member)).collect();
        if !self.live.set_members(set, words as usize, &rows) {
            return Err(ObjectError::ValueSet(described.path.clone()));
        }
        self.value_sets[set] = members;
        Ok(())
    }

    /// Changes one entry that has its own action.
    pub fn apply(&mut self, table: usize, change: Change, entry: Entry) -> Result<(), ObjectError> {
        self.put(table, change, entry, None)
    }

    /// Changes one entry, which may have a reference instead of its own action. It gets a cell if its table has cells.
    pub fn put(
        &mut self,
        table: usize,
        change: Change,
        mut entry: Entry,
        reference: Option<Reference>,
    ) -> Result<(), ObjectError> {
        let identity = identity(&entry);
        let cells = self.description.tables[table].table.cells;
        // Without cells, skip the lookup of the entry: it takes long in a large table.
        let known = if cells.are_there() { self.entries[table].get(&identity) } else { None };
        let known_cell = known.and_then(|known| cell_of(&cells, &known));
        let mut set = None;
        if let Some(reference) = &reference {
            // The slots of its previous set are released after it has new ones.
            let old = self.extras[table].get(&identity).and_then(|extra| extra.set);
            set = self.place_set(table, reference, old.map_or(0, |old| u64::from(old.count)))?;
            match self.referred(table, reference, set) {
                Ok((action, data)) => (entry.action, entry.data) = (action, data),
                Err(reason) => {
                    set.into_iter().for_each(|set| self.remove_set(table, set));
                    return Err(reason);
                }
            }
        }
        let new_cell = (cells.are_there() && known_cell.is_none()).then(|| self.take_cell(table));
        if let Some(cell) = known_cell.or(new_cell) {
            if new_cell.is_some() {
                self.live.clear_cell(cells, cell);
            }
            entry.data[..CELL_BYTES].copy_from_slice(&cell.to_be_bytes());
        }
        if let Err(reason) = self.live.change(table, change, &entry) {
            self.free_cells[table].gone.extend(new_cell.filter(|cell| *cell != Cells::NONE));
            set.into_iter().for_each(|set| self.remove_set(table, set));
            return Err(reason.into());
        }
        let before = self.extras[table].remove(&identity);
        if let Some(Extra { reference: Some(reference), .. }) = &before {
            self.note_user(table, &identity, reference, false);
        }
        let old_set = before.as_ref().and_then(|extra| extra.set);
        if change == Change::Delete {
            self.entries[table].remove(&identity);
            if let Some(cell) = known_cell {
                self.live.clear_cell(cells, cell);
                self.free_cells[table].gone.push_back(cell);
            }
        } else {
            if let Some(reference) = &reference {
                self.note_user(table, &identity, reference, true);
            }
            let extra = Extra { reference, set, ..before.unwrap_or_default() };
            if extra != Extra::default() {
                self.extras[table].insert(identity.clone(), extra);
            }
            self.entries[table].put(&identity, &entry);
        }
        old_set.into_iter().for_each(|set| self.remove_set(table, set));
        Ok(())
    }

    fn take_cell(&mut self, table: usize) -> u32 {
        let size = self.description.tables[table].table.size;
        let free = &mut self.free_cells[table];
        // Use cells that were never used first, so that cells are reused as late as possible.
        if u64::from(free.next) < size {
            free.next += 1;
            return free.next - 1;
        }
        // If the table is full, it rejects the entry.
        free.gone.pop_front().unwrap_or(Cells::NONE)
    }
}

/// Length of the cell number, in bytes, which precedes the action data of an entry.
const CELL_BYTES: usize = Cells::BITS as usize / 8;

fn cell_of(cells: &Cells, entry: &Entry) -> Option<u32> {
    let bytes = entry.data.first_chunk::<CELL_BYTES>().filter(|_| cells.are_there())?;
    Some(u32::from_be_bytes(*bytes))
}
