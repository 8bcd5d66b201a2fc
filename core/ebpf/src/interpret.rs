//! Runs verified programs without native code: on CPUs other than x86-64, and where the system forbids native code.

use crate::instruction::{Arithmetic, Condition, FRAME_POINTER, Operand, Operation, REGISTERS};
use crate::verify::STACK_BYTES;
use crate::{HelperFunction, Verified};

/// The stack of a program. Its initial contents do not matter: the verifier ensures that a program reads only what it
/// has written.
type Stack = [u64; STACK_BYTES as usize / size_of::<u64>()];

/// Runs a program and returns its result.
///
/// # Safety
/// `context` points to as many bytes as the program's interface says, and helpers may be called with it.
pub unsafe fn run(program: &Verified, context: *mut u8) -> u64 {
    let mut stack: Stack = [0; STACK_BYTES as usize / size_of::<u64>()];
    let mut registers = [0; REGISTERS];
    registers[1] = context.expose_provenance() as u64;
    registers[usize::from(FRAME_POINTER)] = stack.as_mut_ptr_range().end.expose_provenance() as u64;
    let operations = program.operations();
    let mut at = 0;
    // Beyond its instructions and at unreachable ones, the program ends.
    while let Some(Some(operation)) = operations.get(at) {
        let value = |operand| match operand {
            Operand::Register(register) => registers[usize::from(register)],
            Operand::Constant(value) => value,
        };
        let (register, result) = match *operation {
            Operation::Arithmetic { kind, is_wide, destination, operand } => {
                let (left, right) = (registers[usize::from(destination)], value(operand));
                (destination, if is_wide { wide(kind, left, right) } else { narrow(kind, left as u32, right as u32) })
            }
            Operation::Negate { is_wide, destination } => {
                let negated = registers[usize::from(destination)].wrapping_neg();
                (destination, if is_wide { negated } else { u64::from(negated as u32) })
            }
            Operation::ByteOrder { is_swapped, bits, destination } => {
                let number = registers[usize::from(destination)];
                let unused = u64::BITS - bits;
                (destination, if is_swapped { number.swap_bytes() >> unused } else { number << unused >> unused })
            }
            Operation::LoadConstant { destination, value } => (destination, value),
            Operation::Load { destination, base, offset, bytes } => {
                let address = registers[usize::from(base)].wrapping_add_signed(i64::from(offset));
                // SAFETY: the verifier has proved that the access is inside a region of the program.
                (destination, unsafe { load(address, bytes) })
            }
            Operation::Store { base, offset, bytes, operand } => {
                let address = registers[usize::from(base)].wrapping_add_signed(i64::from(offset));
                // SAFETY: the verifier has proved that the access is inside a region that the program may change.
                unsafe { store(address, bytes, value(operand)) };
                at += 1;
                continue;
            }
            Operation::Jump { target } => {
                at = target;
                continue;
            }
            Operation::Branch { condition, is_wide, left, right, target } => {
                let (left, right) = (registers[usize::from(left)], value(right));
                at = if holds(condition, is_wide, left, right) { target } else { at + 1 };
                continue;
            }
            Operation::Call { helper } => {
                let [_, a, b, c, d, e, ..] = registers;
                let function: HelperFunction = program.interface().helpers[helper].function();
                // SAFETY: the verifier has proved that the arguments are what the helper expects.
                (0, unsafe { function(a, b, c, d, e) })
            }
            Operation::Exit => return registers[0],
        };
        registers[usize::from(register)] = result;
        at += operation.slots();
    }
    0
}

/// # Safety
/// `address` points to `bytes` readable bytes.
unsafe fn load(address: u64, bytes: u8) -> u64 {
    let from = std::ptr::with_exposed_provenance::<u8>(address as usize);
    // SAFETY: the caller guarantees the access, but no alignment.
    unsafe {
        match bytes {
            1 => u64::from(from.read()),
            2 => u64::from(from.cast::<u16>().read_unaligned()),
            4 => u64::from(from.cast::<u32>().read_unaligned()),
            _ => from.cast::<u64>().read_unaligned(),
        }
    }
}

/// # Safety
/// `address` points to `bytes` writable bytes.
unsafe fn store(address: u64, bytes: u8, value: u64) {
    let to = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
    // SAFETY: the caller guarantees the access, but no alignment.
    unsafe {
        match bytes {
            1 => to.write(value as u8),
            2 => to.cast::<u16>().write_unaligned(value as u16),
            4 => to.cast::<u32>().write_unaligned(value as u32),
            _ => to.cast::<u64>().write_unaligned(value),
        }
    }
}

fn wide(kind: Arithmetic, left: u64, right: u64) -> u64 {
    match kind {
        Arithmetic::Add => left.wrapping_add(right),
        Arithmetic::Subtract => left.wrapping_sub(right),
        Arithmetic::Multiply => left.wrapping_mul(right),
        Arithmetic::Divide => left.checked_div(right).unwrap_or(0),
        Arithmetic::Or => left | right,
        Arithmetic::And => left & right,
        Arithmetic::ShiftLeft => left.wrapping_shl(right as u32),
        Arithmetic::ShiftRight => left.wrapping_shr(right as u32),
        Arithmetic::Modulo => left.checked_rem(right).unwrap_or(left),
        Arithmetic::ExclusiveOr => left ^ right,
        Arithmetic::Move => right,
        Arithmetic::ShiftRightSigned => (left as i64).wrapping_shr(right as u32) as u64,
    }
}

/// Computes in 32 bits; the upper half of the result is zero.
fn narrow(kind: Arithmetic, left: u32, right: u32) -> u64 {
    match kind {
        Arithmetic::ShiftLeft => u64::from(left.wrapping_shl(right)),
        Arithmetic::ShiftRight => u64::from(left.wrapping_shr(right)),
        Arithmetic::ShiftRightSigned => u64::from((left as i32).wrapping_shr(right) as u32),
        // The lower half of these does not depend on the upper halves.
        _ => u64::from(wide(kind, u64::from(left), u64::from(right)) as u32),
    }
}

fn holds(condition: Condition, is_wide: bool, left: u64, right: u64) -> bool {
    let (left, right, signed_left, signed_right) = match is_wide {
        true => (left, right, left as i64, right as i64),
        false => (u64::from(left as u32), u64::from(right as u32), i64::from(left as i32), i64::from(right as i32)),
    };
    match condition {
        Condition::Equal => left == right,
        Condition::NotEqual => left != right,
        Condition::Greater => left > right,
        Condition::GreaterOrEqual => left >= right,
        Condition::Less => left < right,
        Condition::LessOrEqual => left <= right,
        Condition::GreaterSigned => signed_left > signed_right,
        Condition::GreaterOrEqualSigned => signed_left >= signed_right,
        Condition::LessSigned => signed_left < signed_right,
        Condition::LessOrEqualSigned => signed_left <= signed_right,
        Condition::CommonBits => left & right != 0,
    }
}
