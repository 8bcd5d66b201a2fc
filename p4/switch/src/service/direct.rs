//! P4Runtime access to counters and meters of entries, with the entry or separately.

use namehop_p4_compile::layout::{Cells, Id};
use namehop_p4runtime::Status;
use namehop_p4runtime::device::Parts;
use namehop_p4runtime::info::p4_ids::Prefix;
use namehop_p4runtime::info::{Object, P4Ids};
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::table_entry::IdleTimeout;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{CounterData, DirectCounterEntry, DirectMeterEntry, Entity, MeterConfig, TableEntry};

use super::tables::Table;
use super::{Running, cells, place};
use crate::cells::Rates;
use crate::objects::rows::identity;
use crate::objects::state::State;
use crate::program::Entry;

/// Values to set for an entry; values that are `None` stay unchanged.
#[derive(Default)]
pub(super) struct Direct {
    counter: Option<(u64, u64)>,
    /// `Some(None)` removes the rates.
    meter: Option<Option<Rates>>,
}

impl Direct {
    pub(super) fn is_something(&self) -> bool {
        self.counter.is_some() || self.meter.is_some()
    }
}

fn counted(data: CounterData) -> Result<(u64, u64), Status> {
    Ok((cells::amount("packets", data.packet_count)?, cells::amount("bytes", data.byte_count)?))
}

impl Table<'_> {
    fn has(&self, kind: Prefix) -> bool {
        self.info.direct_resource_ids.iter().any(|id| P4Ids::prefix(*id) == kind)
    }

    fn needs(&self, kind: Prefix, what: &str) -> Result<(), Status> {
        if self.has(kind) { Ok(()) } else { Err(self.bad(&format!("its entries have no {what}"))) }
    }

    /// Checks the counter and meter values of an entry, and whether it may have an idle timeout.
    pub(super) fn check_direct(&self, given: &TableEntry) -> Result<Direct, Status> {
        cells::without_colors(given.meter_counter_data)?;
        let mut direct = Direct::default();
        if let Some(data) = given.counter_data {
            self.needs(Prefix::DirectCounter, "counters")?;
            direct.counter = Some(counted(data)?);
        }
        if let Some(config) = given.meter_config {
            self.needs(Prefix::DirectMeter, "meters")?;
            direct.meter = Some(Some(cells::rates(config)?));
        }
        match given.idle_timeout_ns {
            0 => Ok(direct),
            ..0 => Err(self.bad("a time-out must not be below 0")),
            _ if self.info.idle_timeout_behavior == 0 => {
                Err(self.bad("its entries cannot time out: the table needs the property 'support_timeout = true'"))
            }
            _ => Ok(direct),
        }
    }
}

impl Running {
    pub(super) fn set_direct(&self, cells: &Cells, cell: u32, direct: &Direct) {
        if let (Some(counter), Some((packets, bytes))) = (cells.counter, direct.counter) {
            self.objects.live.program.set_counter(counter.index(), cell as usize, packets, bytes);
        }
        if let (Some(meter), Some(rates)) = (cells.meter, direct.meter) {
            self.objects.live.set_rates(meter.index(), u64::from(cell)..u64::from(cell) + 1, rates);
        }
    }

    fn counter_data(&self, cells: &Cells, cell: Option<u32>) -> Option<CounterData> {
        let (packets, bytes) = self.objects.live.program.counter(cells.counter?.index(), cell? as usize)?;
        Some(CounterData { byte_count: bytes as i64, packet_count: packets as i64 })
    }

    /// Adds the requested counter, meter and idle time to an entry.
    pub(super) fn with_direct(
        &self,
        state: &State,
        number: usize,
        (identity, entry): (&[u64], &Entry),
        asked: &TableEntry,
        table: &Table<'_>,
    ) -> TableEntry {
        let mut shown = table.show(entry, state.extra(number, identity), &self.info.actions);
        let (cells, cell) = (table.described.table.cells, state.cell(number, entry));
        if asked.counter_data.is_some() && table.has(Prefix::DirectCounter) {
            shown.counter_data = self.counter_data(&cells, cell);
        }
        if asked.meter_config.is_some() && table.has(Prefix::DirectMeter) {
            shown.meter_config = self.meter_config(&cells, cell);
        }
        if asked.time_since_last_hit.is_some() && shown.idle_timeout_ns > 0 {
            shown.time_since_last_hit = self.idle_time(number, identity).map(|elapsed_ns| IdleTimeout { elapsed_ns });
        }
        shown.is_const = state.is_const(number, identity);
        shown
    }

    fn meter_config(&self, cells: &Cells, cell: Option<u32>) -> Option<MeterConfig> {
        let known = self.objects.live.rates();
        known.get(cells.meter?.index())?.get(&u64::from(cell?)).map(cells::config)
    }

    /// Changes the counter or meter of an existing entry.
    fn change_direct(
        &self,
        update: UpdateType,
        given: Option<&TableEntry>,
        (kind, what): (Prefix, &str),
        direct: &Direct,
    ) -> Result<(), Status> {
        if update != UpdateType::Modify {
            return Err(Status::invalid_argument(format!("the {what} of an entry can only be modified")));
        }
        let given = given.ok_or_else(|| Status::invalid_argument(format!("the entry of the {what} is missing")))?;
        let number = place(&self.info.tables, "table", given.table_id)?;
        let state = self.objects.state();
        let described = &state.description.tables[number];
        let table = Table { info: &self.info.tables[number], described };
        table.needs(kind, &format!("{what}s"))?;
        if given.is_default_action {
            return Err(table.bad(&format!("a default action has no {what}")));
        }
        let (entry, _) = table.entry(given, false)?;
        let name = &table.info.preamble().name;
        let known = state.entry(number, &identity(&entry));
        let known = known.ok_or_else(|| Status::not_found(format!("table {name} has no entry with this key")))?;
        if let Some(cell) = state.cell(number, &known) {
            self.set_direct(&described.table.cells, cell, direct);
        }
        Ok(())
    }

    pub(super) fn change_direct_counter(&self, update: UpdateType, given: &DirectCounterEntry) -> Result<(), Status> {
        let counter = Some(counted(given.data.unwrap_or_default())?);
        let kind = (Prefix::DirectCounter, "counter");
        self.change_direct(update, given.table_entry.as_ref(), kind, &Direct { counter, ..Direct::default() })
    }

    pub(super) fn change_direct_meter(&self, update: UpdateType, given: &DirectMeterEntry) -> Result<(), Status> {
        cells::without_colors(given.counter_data)?;
        let meter = Some(given.config.map(cells::rates).transpose()?);
        let kind = (Prefix::DirectMeter, "meter");
        self.change_direct(update, given.table_entry.as_ref(), kind, &Direct { meter, ..Direct::default() })
    }

    /// Entries of a request, of tables with objects of this kind; without their actions.
    fn direct_parts(
        &self,
        given: Option<&TableEntry>,
        kind: Prefix,
        make: impl Fn(TableEntry) -> Kind + Send + 'static,
    ) -> Result<Parts<'_>, Status> {
        let mut asked = given.cloned().unwrap_or_default();
        asked.counter_data = Some(CounterData::default());
        asked.meter_config = Some(MeterConfig::default());
        if asked.is_default_action {
            return Err(Status::invalid_argument("default actions have no counters and meters"));
        }
        let kept: Vec<u32> = self
            .info
            .tables
            .iter()
            .filter(|table| table.direct_resource_ids.iter().any(|id| P4Ids::prefix(*id) == kind))
            .map(|table| table.preamble().id)
            .collect();
        let parts = self.read_tables(&asked)?;
        let entities = move |part: Vec<Entity>| {
            let entry = |entity: Entity| match entity.entity {
                Some(Kind::TableEntry(entry)) if kept.contains(&entry.table_id) => {
                    Some(Entity { entity: Some(make(entry)) })
                }
                _ => None,
            };
            part.into_iter().filter_map(entry).collect::<Vec<_>>()
        };
        Ok(Box::new(parts.map(move |part| part.map(&entities))))
    }

    pub(super) fn read_direct_counters(&self, given: &DirectCounterEntry) -> Result<Parts<'_>, Status> {
        self.direct_parts(given.table_entry.as_ref(), Prefix::DirectCounter, |entry| {
            let data = entry.counter_data;
            Kind::DirectCounterEntry(DirectCounterEntry { table_entry: Some(key_of(entry)), data })
        })
    }

    pub(super) fn read_direct_meters(&self, given: &DirectMeterEntry) -> Result<Parts<'_>, Status> {
        self.direct_parts(given.table_entry.as_ref(), Prefix::DirectMeter, |entry| {
            let config = entry.meter_config;
            Kind::DirectMeterEntry(DirectMeterEntry { table_entry: Some(key_of(entry)), config, counter_data: None })
        })
    }
}

/// The part of an entry that identifies it.
pub(super) fn key_of(entry: TableEntry) -> TableEntry {
    let TableEntry { table_id, r#match, priority, .. } = entry;
    TableEntry { table_id, r#match, priority, ..TableEntry::default() }
}
