//! The effect of one instruction on the verifier's knowledge, and the rules that it must obey.

use super::fault::{Fault, Part};
use super::state::{STACK_BYTES, State};
use super::value::{Range, Region, Value, opposite};
use crate::instruction::{Arithmetic, Condition, Operand, Operation};
use crate::{Argument, Helper, Interface, Returned};

/// Range of bytes in a region.
type Span = std::ops::Range<i64>;

/// Maximum offset of an address: more than the size of any memory, and far from overflow.
const FARTHEST: i64 = 1 << 20;

/// Applies an operation that neither jumps nor ends the program; the error says why it is not allowed.
pub fn step(state: &mut State, operation: &Operation, interface: &Interface) -> Result<(), Fault> {
    match *operation {
        Operation::Arithmetic { kind, is_wide, destination, operand } => {
            let right = state.operand(operand);
            let result = match kind {
                Arithmetic::Move if is_wide => usable(right, Part::Source)?,
                Arithmetic::Move => Value::Number(number(right, Part::Source)?.low_half()),
                _ => calculate(kind, is_wide, state.value(destination), right)?,
            };
            state.set(destination, result);
        }
        Operation::Negate { is_wide, destination } => {
            let range = number(state.value(destination), Part::Destination)?;
            state.set(destination, Value::Number(range.negate(is_wide)));
        }
        Operation::ByteOrder { bits, destination, .. } => {
            number(state.value(destination), Part::Destination)?;
            state.set(destination, Value::Number(Range::of_bytes((bits / 8) as u8)));
        }
        Operation::LoadConstant { destination, value } => state.set(destination, Value::Number(Range::only(value))),
        Operation::Load { destination, base, offset, bytes } => {
            let (region, span) = access(state.value(base), offset, bytes, interface)?;
            let value = match region {
                Region::Stack => state.load_from_stack(span.start, bytes),
                Region::Context | Region::Memory(_) => Value::Number(Range::of_bytes(bytes)),
            };
            if value == Value::Unusable {
                return Err(Fault::UnwrittenStack);
            }
            state.set(destination, value);
        }
        Operation::Store { base, offset, bytes, operand } => {
            let value = usable(state.operand(operand), Part::Source)?;
            let (region, span) = access(state.value(base), offset, bytes, interface)?;
            store(state, region, span, bytes, value, interface)?;
        }
        Operation::Call { helper } => {
            let helper = interface.helpers.get(helper).ok_or(Fault::NoSuchHelper)?;
            call(state, helper)?;
        }
        Operation::Jump { .. } | Operation::Branch { .. } | Operation::Exit => {}
    }
    Ok(())
}

/// Returns the states after a taken and a not-taken branch; `None` if that case is impossible.
pub fn branch(
    state: &State,
    condition: Condition,
    is_wide: bool,
    left: u8,
    right: Operand,
) -> Result<(Option<State>, Option<State>), Fault> {
    let (left_value, right_value) = (state.value(left), state.operand(right));
    let (left_range, right_range) = match (left_value, right_value) {
        // An address is never zero.
        (Value::Address { .. }, Value::Number(range)) if range == Range::only(0) && is_wide => {
            return match condition {
                Condition::Equal => Ok((None, Some(state.clone()))),
                Condition::NotEqual => Ok((Some(state.clone()), None)),
                _ => Err(Fault::AddressCompared),
            };
        }
        (Value::Address { .. }, _) | (_, Value::Address { .. }) => {
            return Err(Fault::AddressCompared);
        }
        _ => (number(left_value, Part::Left)?, number(right_value, Part::Right)?),
    };
    let when = |condition| {
        if right == Operand::Register(left) {
            // Both sides are the same number, so the comparison adds no knowledge.
            return Some(state.clone());
        }
        let (left_range, right_range) = match is_wide {
            true => left_range.when(condition, right_range)?,
            false => left_range.when_32(condition, right_range)?,
        };
        let mut state = state.clone();
        state.set(left, Value::Number(left_range));
        if let Operand::Register(right) = right {
            state.set(right, Value::Number(right_range));
        }
        Some(state)
    };
    Ok(match opposite(condition) {
        Some(opposite) => (when(condition), when(opposite)),
        None => (Some(state.clone()), Some(state.clone())),
    })
}

/// Checks that the result of a program is set.
pub fn exit(state: &State) -> Result<(), Fault> {
    number(state.value(0), Part::Result).map(drop)
}

fn usable(value: Value, part: Part) -> Result<Value, Fault> {
    match value {
        Value::Unusable => Err(Fault::Unset(part)),
        value => Ok(value),
    }
}

fn number(value: Value, part: Part) -> Result<Range, Fault> {
    match usable(value, part)? {
        Value::Number(range) => Ok(range),
        _ => Err(Fault::NotNumber(part)),
    }
}

fn calculate(kind: Arithmetic, is_wide: bool, left: Value, right: Value) -> Result<Value, Fault> {
    let left = usable(left, Part::Destination)?;
    let right = usable(right, Part::Source)?;
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(Value::Number(left.calculate(kind, right, is_wide))),
        (Value::Address { region, min, max }, Value::Number(range)) if is_wide => {
            move_address(kind, region, min, max, range)
        }
        (Value::Number(range), Value::Address { region, min, max }) if is_wide && kind == Arithmetic::Add => {
            move_address(kind, region, min, max, range)
        }
        _ => Err(Fault::AddressArithmetic),
    }
}

fn move_address(kind: Arithmetic, region: Region, min: i64, max: i64, by: Range) -> Result<Value, Fault> {
    // A single number may be negative. In a range, a value above `i64::MAX` counts as `i64::MAX`, which is too far.
    let (least, greatest) = match by.single() {
        Some(distance) => (distance as i64, distance as i64),
        None => (i64::try_from(by.min).unwrap_or(i64::MAX), i64::try_from(by.max).unwrap_or(i64::MAX)),
    };
    let (min, max) = match kind {
        Arithmetic::Add => (min.saturating_add(least), max.saturating_add(greatest)),
        Arithmetic::Subtract => (min.saturating_sub(greatest), max.saturating_sub(least)),
        _ => return Err(Fault::AddressArithmetic),
    };
    if min < -FARTHEST || max > FARTHEST {
        return Err(Fault::MayLeave(region));
    }
    Ok(Value::Address { region, min, max })
}

/// Returns the accessed region, and the range of bytes that the access can touch. On the stack the range has exactly
/// `bytes` bytes.
fn access(address: Value, offset: i16, bytes: u8, interface: &Interface) -> Result<(Region, Span), Fault> {
    let Value::Address { region, min, max } = usable(address, Part::Address)? else {
        return Err(Fault::NotAddress);
    };
    let (min, max) = (min + i64::from(offset), max + i64::from(offset) + i64::from(bytes));
    let size = match region {
        Region::Context => i64::from(interface.context_bytes),
        Region::Stack => STACK_BYTES,
        Region::Memory(memory) => i64::from(memory.bytes),
    };
    if min < 0 || max > size {
        return Err(Fault::OutOfBounds { bytes: min..max, region, size });
    }
    if region == Region::Stack && max - min != i64::from(bytes) {
        return Err(Fault::VariableStackIndex);
    }
    Ok((region, min..max))
}

fn store(
    state: &mut State,
    region: Region,
    span: Span,
    bytes: u8,
    value: Value,
    interface: &Interface,
) -> Result<(), Fault> {
    if matches!(value, Value::Address { .. }) && (region != Region::Stack || bytes != 8 || span.start % 8 != 0) {
        return Err(Fault::AddressStored);
    }
    match region {
        Region::Stack => state.store_to_stack(span.start, bytes, value),
        Region::Context => {
            let writable = i64::from(interface.writable.start)..=i64::from(interface.writable.end);
            if !writable.contains(&span.start) || !writable.contains(&span.end) {
                return Err(Fault::ReadOnlyContext(span));
            }
        }
        Region::Memory(memory) => {
            if !memory.is_writable {
                return Err(Fault::ReadOnlyMemory);
            }
        }
    }
    Ok(())
}

fn call(state: &mut State, helper: &Helper) -> Result<(), Fault> {
    for (register, argument) in (1..).zip(helper.arguments()) {
        let value = state.value(register);
        let part = Part::Argument { register, helper: helper.name() };
        match argument {
            Argument::Context if value == Value::start_of(Region::Context) => {}
            Argument::Context => return Err(Fault::NotContext(part)),
            Argument::Number => drop(number(value, part)?),
        }
    }
    for register in 1..=Helper::MAX_ARGUMENTS as u8 {
        state.set(register, Value::Unusable);
    }
    let returned = match helper.returned() {
        Returned::Number => Value::Number(Range::ALL),
        Returned::Memory(memory) => Value::start_of(Region::Memory(memory)),
    };
    state.set(0, returned);
    Ok(())
}
