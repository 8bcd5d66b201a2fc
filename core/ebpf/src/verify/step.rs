//! The effect of one instruction on the verifier's knowledge, and the rules that it must obey.

use super::state::{STACK_BYTES, State};
use super::value::{Range, Region, Value, opposite};
use crate::instruction::{Arithmetic, Condition, Operand, Operation};
use crate::{Argument, Helper, Interface, Returned};

/// Range of bytes in a region.
type Span = std::ops::Range<i64>;

/// Maximum offset of an address: more than the size of any memory, and far from overflow.
const FARTHEST: i64 = 1 << 20;

const ADDRESS_COMPARED: &str = "an address can only be compared with zero, for equality, in 64 bits";

/// Applies an operation that neither jumps nor ends the program; the error says why it is not allowed.
pub fn step(state: &mut State, operation: &Operation, interface: &Interface) -> Result<(), String> {
    match *operation {
        Operation::Arithmetic { kind, is_wide, destination, operand } => {
            let right = state.operand(operand);
            let result = match kind {
                Arithmetic::Move if is_wide => usable(right, "source")?,
                Arithmetic::Move => Value::Number(number(right, "source")?.low_half()),
                _ => calculate(kind, is_wide, state.value(destination), right)?,
            };
            state.set(destination, result);
        }
        Operation::Negate { is_wide, destination } => {
            let range = number(state.value(destination), "destination")?;
            state.set(destination, Value::Number(range.negate(is_wide)));
        }
        Operation::ByteOrder { bits, destination, .. } => {
            number(state.value(destination), "destination")?;
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
                return Err("stack read of bytes that were not written before, or of part of an address".to_owned());
            }
            state.set(destination, value);
        }
        Operation::Store { base, offset, bytes, operand } => {
            let value = usable(state.operand(operand), "source")?;
            let (region, span) = access(state.value(base), offset, bytes, interface)?;
            store(state, region, span, bytes, value, interface)?;
        }
        Operation::Call { helper } => {
            let helper = interface.helpers.get(helper).ok_or("no such helper")?;
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
) -> Result<(Option<State>, Option<State>), String> {
    let (left_value, right_value) = (state.value(left), state.operand(right));
    let (left_range, right_range) = match (left_value, right_value) {
        // An address is never zero.
        (Value::Address { .. }, Value::Number(range)) if range == Range::only(0) && is_wide => {
            return match condition {
                Condition::Equal => Ok((None, Some(state.clone()))),
                Condition::NotEqual => Ok((Some(state.clone()), None)),
                _ => Err(ADDRESS_COMPARED.to_owned()),
            };
        }
        (Value::Address { .. }, _) | (_, Value::Address { .. }) => {
            return Err(ADDRESS_COMPARED.to_owned());
        }
        _ => (number(left_value, "left side")?, number(right_value, "right side")?),
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
pub fn exit(state: &State) -> Result<(), String> {
    number(state.value(0), "result in register 0").map(drop)
}

fn usable(value: Value, what: &str) -> Result<Value, String> {
    match value {
        Value::Unusable => Err(format!("the {what} is not set on every path to this instruction")),
        value => Ok(value),
    }
}

fn number(value: Value, what: &str) -> Result<Range, String> {
    match usable(value, what)? {
        Value::Number(range) => Ok(range),
        _ => Err(format!("the {what} is an address where a number is needed")),
    }
}

fn calculate(kind: Arithmetic, is_wide: bool, left: Value, right: Value) -> Result<Value, String> {
    let left = usable(left, "destination")?;
    let right = usable(right, "source")?;
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(Value::Number(left.calculate(kind, right, is_wide))),
        (Value::Address { region, min, max }, Value::Number(range)) if is_wide => {
            move_address(kind, region, min, max, range)
        }
        (Value::Number(range), Value::Address { region, min, max }) if is_wide && kind == Arithmetic::Add => {
            move_address(kind, region, min, max, range)
        }
        _ => Err("addresses allow only addition and subtraction of numbers".to_owned()),
    }
}

fn move_address(kind: Arithmetic, region: Region, min: i64, max: i64, by: Range) -> Result<Value, String> {
    // A single number may be negative. In a range, a value above `i64::MAX` counts as `i64::MAX`, which is too far.
    let (least, greatest) = match by.single() {
        Some(distance) => (distance as i64, distance as i64),
        None => (i64::try_from(by.min).unwrap_or(i64::MAX), i64::try_from(by.max).unwrap_or(i64::MAX)),
    };
    let (min, max) = match kind {
        Arithmetic::Add => (min.saturating_add(least), max.saturating_add(greatest)),
        Arithmetic::Subtract => (min.saturating_sub(greatest), max.saturating_sub(least)),
        _ => return Err("addresses allow only addition and subtraction of numbers".to_owned()),
    };
    if min < -FARTHEST || max > FARTHEST {
        return Err(format!("the address may leave {region}: limit the index first, with `if` or `&`"));
    }
    Ok(Value::Address { region, min, max })
}

/// Returns the accessed region, and the range of bytes that the access can touch. On the stack the range has exactly
/// `bytes` bytes.
fn access(address: Value, offset: i16, bytes: u8, interface: &Interface) -> Result<(Region, Span), String> {
    let Value::Address { region, min, max } = usable(address, "address")? else {
        return Err("a number is not an address: access memory through the context or a pointer that a helper returns"
            .to_owned());
    };
    let (min, max) = (min + i64::from(offset), max + i64::from(offset) + i64::from(bytes));
    let size = match region {
        Region::Context => i64::from(interface.context_bytes),
        Region::Stack => STACK_BYTES,
        Region::Memory(memory) => i64::from(memory.bytes),
    };
    if min < 0 || max > size {
        return Err(format!("access to bytes {min} to {} of {region}, which has {size}", max - 1));
    }
    if region == Region::Stack && max - min != i64::from(bytes) {
        return Err("the stack cannot be indexed by a variable".to_owned());
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
) -> Result<(), String> {
    if matches!(value, Value::Address { .. }) && (region != Region::Stack || bytes != 8 || span.start % 8 != 0) {
        return Err("addresses can be stored only on the stack, whole and aligned".to_owned());
    }
    match region {
        Region::Stack => state.store_to_stack(span.start, bytes, value),
        Region::Context => {
            let writable = i64::from(interface.writable.start)..=i64::from(interface.writable.end);
            if !writable.contains(&span.start) || !writable.contains(&span.end) {
                return Err(format!("bytes {} to {} of the context cannot be changed", span.start, span.end - 1));
            }
        }
        Region::Memory(memory) => {
            if !memory.is_writable {
                return Err("the memory that this helper returns cannot be changed".to_owned());
            }
        }
    }
    Ok(())
}

fn call(state: &mut State, helper: &Helper) -> Result<(), String> {
    for (register, argument) in (1..).zip(helper.arguments()) {
        let value = state.value(register);
        let what = || format!("argument {register} of {}", helper.name());
        match argument {
            Argument::Context if value == Value::start_of(Region::Context) => {}
            Argument::Context => return Err(format!("{} must be the context", what())),
            Argument::Number => drop(number(value, &what())?),
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
