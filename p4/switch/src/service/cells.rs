//! P4Runtime access to counters, meters and registers: cells by index, and values of any type.

use std::ops::Range;

use namehop_p4_compile::description::RegisterDescription;
use namehop_p4_compile::layout::{Leaf, Shape};
use namehop_p4runtime::Status;
use namehop_p4runtime::device::Parts;
use namehop_p4runtime::info::Object;
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::p4_data::Data as DataValue;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{
    CounterData, CounterEntry, Entity, Index, MeterConfig, MeterEntry, P4Data, P4StructLike, RegisterEntry, Unsupported,
};
use num_bigint::BigInt;

use super::{PART, Running, bits, parts, places};
use crate::cells::Rates;
use crate::objects::cells::{read_leaf, write_leaf};

/// Cells of one object: its index, and the cell indices.
type Cells = (usize, Range<u64>);

/// The cells of a request: one cell, all cells of one object, or all cells of all objects.
fn cells<T: Object>(
    kind: &str,
    list: &[T],
    id: u32,
    index: Option<Index>,
    size: impl Fn(&T) -> u64,
) -> Result<Vec<Cells>, Status> {
    let places = places(list, kind, id)?;
    let range = |place: usize| {
        let (preamble, size) = (list[place].preamble(), size(&list[place]));
        let Some(Index { index }) = index else { return Ok((place, 0..size)) };
        if id == 0 {
            return Err(Status::invalid_argument(format!("an index needs the id of one {kind}")));
        }
        match u64::try_from(index) {
            Ok(index) if index < size => Ok((place, index..index + 1)),
            _ => Err(Status::out_of_range(format!(
                "{kind} {}: index {index} is out of range for {size} cells",
                preamble.name
            ))),
        }
    };
    places.into_iter().map(range).collect()
}

/// The cells of a change, which must be a modification of one object.
fn changed(kind: &str, update: UpdateType, id: u32, mut cells: Vec<Cells>) -> Result<Cells, Status> {
    if update != UpdateType::Modify {
        return Err(Status::invalid_argument(format!("a cell of a {kind} can only be modified")));
    }
    match cells.pop().filter(|_| id != 0) {
        Some(cells) => Ok(cells),
        None => Err(Status::invalid_argument(format!("the id of the {kind} is missing"))),
    }
}

fn index(index: u64) -> Option<Index> {
    Some(Index { index: index as i64 })
}

/// A 64-bit number that must not be negative.
pub(super) fn amount(what: &str, number: i64) -> Result<u64, Status> {
    u64::try_from(number).map_err(|_| Status::invalid_argument(format!("{what}: {number} is below 0")))
}

/// Rejects per-color counts, which meters do not have.
pub(super) fn without_colors(given: Option<Unsupported>) -> Result<(), Status> {
    match given {
        None => Ok(()),
        Some(_) => Err(Status::unimplemented("meters do not count packets by color")),
    }
}

/// The rates of a meter.
pub(super) fn rates(config: MeterConfig) -> Result<Rates, Status> {
    if config.eburst != 0 {
        return Err(Status::unimplemented(
            "'eburst' is for single-rate meters, and all meters have two rates: omit it",
        ));
    }
    let rates = Rates {
        committed_rate: amount("cir", config.cir)?,
        committed_burst: amount("cburst", config.cburst)?,
        peak_rate: amount("pir", config.pir)?,
        peak_burst: amount("pburst", config.pburst)?,
    };
    let Rates { committed_rate, peak_rate, .. } = rates;
    if committed_rate > peak_rate {
        return Err(Status::invalid_argument(format!("cir {committed_rate} is above pir {peak_rate}")));
    }
    Ok(rates)
}

pub(super) fn config(rates: &Rates) -> MeterConfig {
    MeterConfig {
        cir: rates.committed_rate as i64,
        cburst: rates.committed_burst as i64,
        pir: rates.peak_rate as i64,
        pburst: rates.peak_burst as i64,
        eburst: 0,
    }
}

/// Builds a value from its scalar parts.
pub fn data(shape: &Shape, numbers: &mut impl Iterator<Item = BigInt>) -> P4Data {
    let value = match shape {
        Shape::Bool => DataValue::Bool(numbers.next().is_some_and(|number| number != BigInt::from(0))),
        Shape::Bits { .. } => DataValue::Bitstring(bits::write(&numbers.next().unwrap_or_default())),
        Shape::Struct { members, .. } => DataValue::Struct(P4StructLike {
            members: members.iter().map(|(_, member)| data(member, numbers)).collect(),
        }),
        Shape::Tuple(members) => {
            DataValue::Tuple(P4StructLike { members: members.iter().map(|member| data(member, numbers)).collect() })
        }
    };
    P4Data { data: Some(value) }
}

/// Appends the scalar parts of a value to `into`: `None` for each part of a member without data, which keeps its value.
fn numbers(what: &str, shape: &Shape, given: &P4Data, into: &mut Vec<Option<BigInt>>) -> Result<(), Status> {
    let wrong = || Status::invalid_argument(format!("{what}: the value has the wrong type"));
    let mut members = |shapes: &mut dyn Iterator<Item = &Shape>, given: &P4StructLike| {
        let shapes: Vec<_> = shapes.collect();
        if shapes.len() != given.members.len() {
            return Err(wrong());
        }
        shapes.iter().zip(&given.members).try_for_each(|(shape, member)| numbers(what, shape, member, into))
    };
    match (shape, &given.data) {
        (Shape::Struct { members: shapes, .. }, Some(DataValue::Struct(given))) => {
            members(&mut shapes.iter().map(|(_, shape)| shape), given)
        }
        (Shape::Tuple(shapes), Some(DataValue::Tuple(given))) => members(&mut shapes.iter(), given),
        (_, None) => {
            into.extend(shape.leaves().0.iter().map(|_| None));
            Ok(())
        }
        (Shape::Bool, Some(DataValue::Bool(given))) => {
            into.push(Some(BigInt::from(u8::from(*given))));
            Ok(())
        }
        (Shape::Bits { width, .. }, Some(DataValue::Bitstring(given))) => {
            into.push(Some(bits::read(&|| what.to_owned(), given, *width)?));
            Ok(())
        }
        _ => Err(wrong()),
    }
}

/// The type of a register's cells, and their scalar parts.
fn parts_of(register: &RegisterDescription) -> Result<(&Shape, Vec<Leaf>), Status> {
    let path = &register.path;
    let shape = register.shape.as_ref().ok_or_else(|| {
        Status::unimplemented(format!(
            "register {path}: its cells contain headers or stacks, which cannot be read or written"
        ))
    })?;
    Ok((shape, shape.leaves().0))
}

impl Running {
    fn counter_cells(&self, given: &CounterEntry) -> Result<Vec<Cells>, Status> {
        cells("counter", &self.info.counters, given.counter_id, given.index, |counter| counter.size as u64)
    }

    pub(super) fn change_counter(&self, update: UpdateType, given: &CounterEntry) -> Result<(), Status> {
        let (place, indices) = changed("counter", update, given.counter_id, self.counter_cells(given)?)?;
        let data = given.data.unwrap_or_default();
        let (packets, bytes) = (amount("packets", data.packet_count)?, amount("bytes", data.byte_count)?);
        for index in indices {
            self.objects.live.program.set_counter(place, index as usize, packets, bytes);
        }
        Ok(())
    }

    pub(super) fn read_counters(&self, given: &CounterEntry) -> Result<Parts<'_>, Status> {
        let all = self.counter_cells(given)?.into_iter();
        let all = all.flat_map(|(place, indices)| indices.map(move |index| (place, index)));
        Ok(parts(all.filter_map(|(place, at)| {
            let (packets, bytes) = self.objects.live.program.counter(place, at as usize)?;
            let data = CounterData { byte_count: bytes as i64, packet_count: packets as i64 };
            let counter_id = self.info.counters[place].preamble().id;
            let entry = CounterEntry { counter_id, index: index(at), data: Some(data) };
            Some(Ok(Entity { entity: Some(Kind::CounterEntry(entry)) }))
        })))
    }

    fn meter_cells(&self, given: &MeterEntry) -> Result<Vec<Cells>, Status> {
        cells("meter", &self.info.meters, given.meter_id, given.index, |meter| meter.size as u64)
    }

    pub(super) fn change_meter(&self, update: UpdateType, given: &MeterEntry) -> Result<(), Status> {
        without_colors(given.counter_data)?;
        let (place, indices) = changed("meter", update, given.meter_id, self.meter_cells(given)?)?;
        let rates = given.config.map(rates).transpose()?;
        self.objects.live.set_rates(place, indices, rates);
        Ok(())
    }

    pub(super) fn read_meters(&self, given: &MeterEntry) -> Result<Parts<'_>, Status> {
        let all = self.meter_cells(given)?.into_iter();
        let all = all.flat_map(|(place, indices)| indices.map(move |index| (place, index)));
        Ok(parts(all.map(|(place, at)| {
            let known = self.objects.live.rates();
            let config = known.get(place).and_then(|cells| cells.get(&at)).map(config);
            let meter_id = self.info.meters[place].preamble().id;
            Ok(Entity {
                entity: Some(Kind::MeterEntry(MeterEntry { meter_id, index: index(at), config, counter_data: None })),
            })
        })))
    }

    fn register_cells(&self, given: &RegisterEntry) -> Result<Vec<Cells>, Status> {
        cells("register", &self.info.registers, given.register_id, given.index, |register| register.size as u64)
    }

    pub(super) fn change_register(&self, update: UpdateType, given: &RegisterEntry) -> Result<(), Status> {
        let (place, indices) = changed("register", update, given.register_id, self.register_cells(given)?)?;
        let state = self.objects.state();
        let described = &state.description.registers[place];
        let Some(data) = &given.data else {
            // As with counters and meters, no value resets the cells.
            self.objects.live.each_register_cell(place, indices, |_, cell| cell.fill(0));
            return Ok(());
        };
        let (shape, leaves) = parts_of(described)?;
        let mut values = Vec::new();
        numbers(&described.path, shape, data, &mut values)?;
        self.objects.live.each_register_cell(place, indices, |_, cell| {
            let given = leaves.iter().zip(&values).filter_map(|(leaf, number)| Some((leaf, number.as_ref()?)));
            given.for_each(|(leaf, number)| write_leaf(leaf, cell, number));
        });
        Ok(())
    }

    pub(super) fn read_registers(&self, given: &RegisterEntry) -> Result<Parts<'_>, Status> {
        let all = self.register_cells(given)?.into_iter();
        // Read some cells at a time, so that packets do not wait for long.
        let pieces = all.flat_map(|(place, cells)| {
            let end = cells.end;
            cells.step_by(PART).map(move |first| (place, first..(first + PART as u64).min(end)))
        });
        Ok(Box::new(pieces.map(|(place, indices)| {
            let state = self.objects.state();
            let described = &state.description.registers[place];
            let (shape, leaves) = parts_of(described)?;
            let register_id = self.info.registers[place].preamble().id;
            let mut part = Vec::new();
            self.objects.live.each_register_cell(place, indices, |at, cell| {
                let data = data(shape, &mut leaves.iter().map(|leaf| read_leaf(leaf, cell)));
                let entry = RegisterEntry { register_id, index: index(at), data: Some(data) };
                part.push(Entity { entity: Some(Kind::RegisterEntry(entry)) });
            });
            Ok(part)
        })))
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;

    use super::{DataValue, P4Data, data, numbers};
    use namehop_p4_compile::layout::Shape;

    #[test]
    fn values_are_written_as_they_are_read() {
        let bits = |width| Shape::Bits { width, signed: false };
        let inner = Shape::Struct { name: "s".into(), members: vec![("a".into(), Shape::Bool), ("b".into(), bits(9))] };
        let shape = Shape::Tuple(vec![bits(48), inner]);
        let values = [0x0201_u64, 1, 511].map(BigInt::from);
        let written = data(&shape, &mut values.iter().cloned());
        let mut read = Vec::new();
        numbers("x", &shape, &written, &mut read).expect("the value has this type");
        assert_eq!(read, values.clone().map(Some));
        let partial = Shape::Tuple(vec![bits(48), Shape::Bool]);
        let written = data(&partial, &mut [7, 1].map(BigInt::from).into_iter());
        let Some(DataValue::Tuple(mut parts)) = written.data else { panic!("a tuple") };
        parts.members[0].data = None;
        let (written, mut read) = (P4Data { data: Some(DataValue::Tuple(parts)) }, Vec::new());
        numbers("x", &partial, &written, &mut read).expect("a member may have no data");
        assert_eq!(read, [None, Some(BigInt::from(1))]);
        let written = data(&shape, &mut values.into_iter());
        let narrow = Shape::Tuple(vec![bits(9), Shape::Bool]);
        assert!(numbers("x", &narrow, &written, &mut Vec::new()).expect_err("too wide").message().contains("9 bits"));
        assert!(numbers("x", &bits(48), &written, &mut Vec::new()).is_err());
        let fewer = Shape::Tuple(vec![bits(48)]);
        assert!(numbers("x", &fewer, &written, &mut Vec::new()).is_err());
    }
}
