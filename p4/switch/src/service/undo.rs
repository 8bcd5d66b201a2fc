//! Undoable changes, for batches that apply either all updates or none: the old state is saved before each update.
//!
//! Effects of packets in between are kept: a counter keeps what it has counted since.

use namehop_p4_compile::description::Identity;
use namehop_p4_compile::layout::Id;
use namehop_p4_lang::interpret::table::Match;
use namehop_p4runtime::Status;
use namehop_p4runtime::device::{Device, Undo};
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::packet_replication_engine_entry::Type as ReplicationKind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{CounterData, Entity, Index, PacketReplicationEngineEntry, TableEntry};

use super::profiles::{internal, status};
use super::tables::Table;
use super::{Running, place};
use crate::cells::Rates;
use crate::objects::profiles::Reference;
use crate::objects::replication::{Mirror, Session};
use crate::objects::rows::identity;
use crate::objects::state::Notes;
use crate::program::{Change, Entry};

/// Counter and meter of an entry, or of a cell.
#[derive(Clone, Copy, Default)]
struct Measures {
    /// Index of the counter, and its packets and bytes.
    counter: Option<(usize, (u64, u64))>,
    /// Index of the meter, and its rates.
    meter: Option<(usize, Option<Rates>)>,
}

/// The saved state of an entry.
struct Kept {
    entry: Entry,
    reference: Option<Reference>,
    timeout_ns: i64,
    notes: Notes,
    measures: Measures,
}

impl Running {
    /// Makes a change, and returns a function that undoes it.
    pub(super) fn change_and_keep(&self, update: UpdateType, entity: &Entity) -> Result<Undo<'_>, Status> {
        let undo = match &entity.entity {
            Some(Kind::TableEntry(given)) if given.is_default_action => self.keep_default(given)?,
            Some(Kind::TableEntry(given)) => self.keep_entry(given)?,
            Some(Kind::DirectCounterEntry(given)) => {
                self.keep_measures(given.table_entry.as_ref(), Some(given.data.unwrap_or_default()))?
            }
            Some(Kind::DirectMeterEntry(given)) => self.keep_measures(given.table_entry.as_ref(), None)?,
            Some(Kind::CounterEntry(given)) => {
                let number = place(&self.info.counters, "counter", given.counter_id)?;
                self.keep_counter(number, one_cell(given.index)?, given.data.unwrap_or_default())
            }
            Some(Kind::MeterEntry(given)) => {
                let number = place(&self.info.meters, "meter", given.meter_id)?;
                self.keep_meter(number, one_cell(given.index)?)
            }
            Some(Kind::RegisterEntry(given)) => {
                let number = place(&self.info.registers, "register", given.register_id)?;
                self.keep_register(number, one_cell(given.index)?)
            }
            Some(Kind::PacketReplicationEngineEntry(given)) => self.keep_copies(given),
            Some(Kind::DigestEntry(given)) => {
                let number = place(&self.info.digests, "digest", given.digest_id)?;
                self.keep_wanted(number)
            }
            Some(Kind::ActionProfileMember(given)) => self.keep_member(given.action_profile_id, given.member_id)?,
            Some(Kind::ActionProfileGroup(given)) => self.keep_group(given.action_profile_id, given.group_id)?,
            Some(Kind::ValueSetEntry(given)) => {
                let number = place(&self.info.value_sets, "value set", given.value_set_id)?;
                self.keep_value_set(number)
            }
            Some(Kind::ExternEntry(_)) | None => Box::new(|| Ok(())),
        };
        self.change(update, entity)?;
        Ok(undo)
    }

    fn keep_default(&self, given: &TableEntry) -> Result<Undo<'_>, Status> {
        let number = place(&self.info.tables, "table", given.table_id)?;
        let state = self.objects.state();
        let Some(((action, data), notes)) = state.default(number) else { return Ok(Box::new(|| Ok(()))) };
        let (action, data, notes) = (*action, data.clone(), notes.clone());
        Ok(Box::new(move || {
            let mut state = self.objects.state();
            state.put_default(number, action, data).map_err(internal)?;
            state.set_default_notes(number, notes);
            Ok(())
        }))
    }

    /// The table and the identity of an entry.
    fn identity_of(&self, given: &TableEntry) -> Result<(usize, Identity), Status> {
        let number = place(&self.info.tables, "table", given.table_id)?;
        let state = self.objects.state();
        let table = Table { info: &self.info.tables[number], described: &state.description.tables[number] };
        Ok((number, identity(&table.entry(given, false)?.0)))
    }

    fn measures(&self, number: usize, identity: &Identity) -> Measures {
        let state = self.objects.state();
        let cells = state.description.tables[number].table.cells;
        let Some(cell) = state.entry(number, identity).and_then(|entry| state.cell(number, &entry)) else {
            return Measures::default();
        };
        let counted = |counter: usize| Some((counter, self.objects.live.program.counter(counter, cell as usize)?));
        let limits = |meter: usize| {
            let known = self.objects.live.rates();
            (meter, known.get(meter).and_then(|known| known.get(&u64::from(cell))).copied())
        };
        Measures {
            counter: cells.counter.map(Id::index).and_then(counted),
            meter: cells.meter.map(Id::index).map(limits),
        }
    }

    fn keep_entry(&self, given: &TableEntry) -> Result<Undo<'_>, Status> {
        let (number, identity) = self.identity_of(given)?;
        let measures = self.measures(number, &identity);
        let state = self.objects.state();
        let extra = state.extra(number, &identity);
        let kept = state.entry(number, &identity).map(|entry| Kept {
            entry,
            reference: extra.and_then(|extra| extra.reference.clone()),
            timeout_ns: extra.map_or(0, |extra| extra.timeout_ns),
            notes: extra.map(|extra| extra.notes.clone()).unwrap_or_default(),
            measures,
        });
        let set = given.counter_data.map(amounts);
        Ok(Box::new(move || {
            let mut state = self.objects.state();
            let now = state.entry(number, &identity);
            let Some(kept) = kept else {
                return match now {
                    Some(entry) => state.apply(number, Change::Delete, entry).map_err(internal),
                    None => Ok(()),
                };
            };
            let change = if now.is_some() { Change::Modify } else { Change::Insert };
            state.put(number, change, kept.entry, kept.reference).map_err(internal)?;
            state.set_extra(number, &identity, kept.timeout_ns, kept.notes);
            let cell = state.entry(number, &identity).and_then(|entry| state.cell(number, &entry));
            drop(state);
            // The counter of an entry that was inserted again starts at zero; the counter of an entry that stayed has
            // the value that was set, or has gone on counting.
            let from = match (change, set) {
                (Change::Insert, _) => Some((0, 0)),
                (_, set) => set,
            };
            if let Some(cell) = cell {
                self.restore(kept.measures, u64::from(cell), from);
            }
            Ok(())
        }))
    }

    /// Saves an entry of which only the counter or meter is set.
    fn keep_measures(&self, given: Option<&TableEntry>, set: Option<CounterData>) -> Result<Undo<'_>, Status> {
        let given = given.ok_or_else(|| Status::invalid_argument("the entry is missing"))?;
        let (number, identity) = self.identity_of(given)?;
        let kept = self.measures(number, &identity);
        Ok(Box::new(move || {
            let state = self.objects.state();
            let cell = state.entry(number, &identity).and_then(|entry| state.cell(number, &entry));
            drop(state);
            if let Some(cell) = cell {
                self.restore(kept, u64::from(cell), set.map(amounts));
            }
            Ok(())
        }))
    }

    /// Saves a cell of a counter.
    fn keep_counter(&self, number: usize, cell: u64, set: CounterData) -> Undo<'_> {
        let before = self.objects.live.program.counter(number, cell as usize);
        let kept = Measures { counter: before.map(|before| (number, before)), meter: None };
        Box::new(move || {
            self.restore(kept, cell, Some(amounts(set)));
            Ok(())
        })
    }

    /// Saves a cell of a meter.
    fn keep_meter(&self, number: usize, cell: u64) -> Undo<'_> {
        let rates = self.objects.live.rates().get(number).and_then(|known| known.get(&cell)).copied();
        let kept = Measures { counter: None, meter: Some((number, rates)) };
        Box::new(move || {
            self.restore(kept, cell, None);
            Ok(())
        })
    }

    /// Saves a cell of a register.
    fn keep_register(&self, number: usize, cell: u64) -> Undo<'_> {
        let mut before = Vec::new();
        let one = move || cell..cell.saturating_add(1);
        self.objects.live.each_register_cell(number, one(), |_, bytes| before.extend_from_slice(bytes));
        Box::new(move || {
            self.objects.live.each_register_cell(number, one(), |_, bytes| bytes.copy_from_slice(&before));
            Ok(())
        })
    }

    /// Saves a multicast group or a clone session, which may have been set at the control socket.
    fn keep_copies(&self, given: &PacketReplicationEngineEntry) -> Undo<'_> {
        let switch = &self.objects.live.switch;
        let known = self.objects.replication();
        match &given.r#type {
            Some(ReplicationKind::MulticastGroupEntry(group)) => {
                let group = u64::from(group.multicast_group_id);
                let kept = known.groups.get(&group).cloned().unwrap_or_default();
                Box::new(move || {
                    let done = self.objects.replication().group(switch, group, kept);
                    done.map_err(|error| Status::internal(error.to_string()))
                })
            }
            Some(ReplicationKind::CloneSessionEntry(session)) => {
                let number = u64::from(session.session_id);
                let session: Session = known.sessions.get(&number).cloned().unwrap_or_default();
                let mirror: Option<Mirror> = known.mirrors.get(&number).copied();
                Box::new(move || {
                    let mut known = self.objects.replication();
                    let done = match mirror {
                        Some(_) => known.mirror(switch, number, mirror),
                        None => known.session(switch, number, session),
                    };
                    done.map_err(|error| Status::internal(error.to_string()))
                })
            }
            None => Box::new(|| Ok(())),
        }
    }

    /// Saves a member of an action profile.
    fn keep_member(&self, profile: u32, id: u32) -> Result<Undo<'_>, Status> {
        let profile = self.profile(profile)?;
        let action = self.objects.state().profiles[profile].members.get(&id).map(|member| member.action.clone());
        Ok(Box::new(move || {
            let mut state = self.objects.state();
            let is_there = state.profiles[profile].members.contains_key(&id);
            let Some(change) = change_back(is_there, action.is_some()) else { return Ok(()) };
            state.change_member(profile, id, change, action).map_err(status)
        }))
    }

    /// Saves a group of members.
    fn keep_group(&self, profile: u32, id: u32) -> Result<Undo<'_>, Status> {
        let profile = self.profile(profile)?;
        let state = self.objects.state();
        let kept = state.profiles[profile].groups.get(&id).map(|group| (group.shares.clone(), group.most));
        Ok(Box::new(move || {
            let mut state = self.objects.state();
            let is_there = state.profiles[profile].groups.contains_key(&id);
            let Some(change) = change_back(is_there, kept.is_some()) else { return Ok(()) };
            let (shares, most) = kept.unwrap_or_default();
            let room = if most == 0 { u32::MAX } else { most };
            state.change_group(profile, id, change, shares, room).map_err(status)?;
            if let Some(group) = state.profiles[profile].groups.get_mut(&id) {
                group.most = most;
            }
            Ok(())
        }))
    }

    /// Saves a value set.
    fn keep_value_set(&self, number: usize) -> Undo<'_> {
        let members: Vec<Vec<Match>> = self.objects.state().value_sets[number].clone();
        Box::new(move || self.objects.state().set_members(number, members).map_err(internal))
    }

    /// Restores a cell, and adds what was counted since it was set to `from`.
    fn restore(&self, kept: Measures, cell: u64, from: Option<(u64, u64)>) {
        let live = &self.objects.live;
        if let (Some((counter, before)), Some(from)) = (kept.counter, from) {
            // No packet may be counted between reading and writing.
            live.switch.between_bursts(|_| {
                let now = live.program.counter(counter, cell as usize).unwrap_or(from);
                let sum = |before: u64, now: u64, from: u64| before.wrapping_add(now.wrapping_sub(from));
                let (packets, bytes) = (sum(before.0, now.0, from.0), sum(before.1, now.1, from.1));
                live.program.set_counter(counter, cell as usize, packets, bytes);
            });
        }
        if let Some((meter, rates)) = kept.meter {
            let now = live.rates().get(meter).and_then(|known| known.get(&cell)).copied();
            if now != rates {
                live.set_rates(meter, cell..cell + 1, rates);
            }
        }
    }
}

/// The single cell of an update in an all-or-none batch.
fn one_cell(index: Option<Index>) -> Result<u64, Status> {
    let Some(Index { index }) = index else {
        return Err(Status::unimplemented("an atomic batch needs the index of each cell"));
    };
    Ok(u64::try_from(index).unwrap_or(u64::MAX))
}

fn amounts(data: CounterData) -> (u64, u64) {
    (data.packet_count as u64, data.byte_count as u64)
}

/// The change that restores whether an object exists.
fn change_back(is_there: bool, was_there: bool) -> Option<Change> {
    match (is_there, was_there) {
        (true, true) => Some(Change::Modify),
        (true, false) => Some(Change::Delete),
        (false, true) => Some(Change::Insert),
        (false, false) => None,
    }
}
