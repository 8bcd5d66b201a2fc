//! Decodes the x86-64 instructions that translated programs may use, and no others.
//!
//! It shares no code with the assembler, so that a mistake in either of them is detected.

/// The number of a register in encodings: 0 is RAX, 4 is RSP.
pub type Number = u8;

/// The effect of an instruction, as far as the check needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Reads registers, and writes this one.
    Writes(Number),
    /// `to = from`, all 64 bits.
    Copies {
        to: Number,
        from: Number,
    },
    /// `register = value`, with 64 bits in the instruction.
    Constant {
        register: Number,
        value: u64,
    },
    /// Writes RAX and RDX.
    Divides,
    /// Sets flags only.
    Compares,
    Loads {
        bytes: u8,
        to: Number,
        base: Number,
        offset: i32,
    },
    Stores {
        bytes: u8,
        base: Number,
        offset: i32,
    },
    /// Jumps to this offset in the code.
    Jumps {
        target: usize,
    },
    /// Jumps to this offset or continues.
    Branches {
        target: usize,
    },
    /// Calls the function at the address in RAX.
    CallsRax,
    Pushes(Number),
    Pops(Number),
    /// `RSP = RSP - value`.
    Reserves(i32),
    /// RBP = RSP.
    Frames,
    Leaves,
    Returns,
    EntryMark,
}

/// A CPU instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Offset after the instruction.
    pub end: usize,
    pub effect: Effect,
}

/// Reads the code from an offset on.
struct Reader<'a> {
    code: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = self.code.get(self.at).copied();
        self.at += 1;
        byte
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.code.get(self.at..)?.first_chunk().copied();
        self.at += N;
        bytes
    }

    fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    /// Returns the offset that a 32-bit displacement leads to; `None` before the start of the code.
    fn target(&mut self) -> Option<usize> {
        let displacement = self.i32()?;
        self.at.checked_add_signed(displacement as isize)
    }
}

/// The prefixes of an instruction.
#[derive(Clone, Copy)]
struct Prefixes {
    is_16: bool,
    rex: u8,
}

impl Prefixes {
    fn is_wide(self) -> bool {
        self.rex & 8 != 0
    }

    /// Returns the register in the lowest bits of an opcode or a ModRM byte.
    fn operand(self, bits: u8) -> Number {
        bits & 7 | (self.rex & 1) << 3
    }

    /// Returns the width in bytes of an operand that is not a single byte.
    fn bytes(self) -> u8 {
        match (self.is_16, self.is_wide()) {
            (true, _) => 2,
            (false, true) => 8,
            (false, false) => 4,
        }
    }
}

/// A ModRM byte and its displacement.
struct Operands {
    /// A register or a part of the opcode.
    field: Number,
    location: Location,
}

enum Location {
    Register(Number),
    Memory { base: Number, offset: i32 },
}

/// Decodes the only forms used: a register, or a base with a 32-bit offset. Returns `None` for all others.
fn operands(reader: &mut Reader<'_>, prefixes: Prefixes) -> Option<Operands> {
    let byte = reader.byte()?;
    let field = byte >> 3 & 7 | (prefixes.rex & 4) << 1;
    let location = match byte >> 6 {
        3 => Location::Register(prefixes.operand(byte)),
        2 if byte & 7 != 4 => Location::Memory { base: prefixes.operand(byte), offset: reader.i32()? },
        _ => return None,
    };
    Some(Operands { field, location })
}

/// Decodes the instruction at an offset; `None` if a program may not contain it.
pub fn decode(code: &[u8], at: usize) -> Option<Decoded> {
    if code.get(at..)?.starts_with(&[0xF3, 0x0F, 0x1E, 0xFA]) {
        return Some(Decoded { end: at + 4, effect: Effect::EntryMark });
    }
    let mut reader = Reader { code, at };
    let mut prefixes = Prefixes { is_16: false, rex: 0 };
    let mut opcode = reader.byte()?;
    if opcode == 0x66 {
        prefixes.is_16 = true;
        opcode = reader.byte()?;
    }
    if opcode & 0xF0 == 0x40 {
        prefixes.rex = opcode & 0x0F;
        opcode = reader.byte()?;
        // An index register, which no address here uses.
        if prefixes.rex & 2 != 0 {
            return None;
        }
    }
    let effect = match opcode {
        0x0F => two_bytes(&mut reader, prefixes)?,
        0x50..=0x57 => Effect::Pushes(prefixes.operand(opcode)),
        0x58..=0x5F => Effect::Pops(prefixes.operand(opcode)),
        0xB8..=0xBF => {
            let register = prefixes.operand(opcode);
            match prefixes.is_wide() {
                true => Effect::Constant { register, value: u64::from_le_bytes(reader.array()?) },
                false => {
                    reader.i32()?;
                    Effect::Writes(register)
                }
            }
        }
        0xC3 => Effect::Returns,
        0xC9 => Effect::Leaves,
        0xE9 => Effect::Jumps { target: reader.target()? },
        _ => with_operands(&mut reader, prefixes, opcode)?,
    };
    // The 16-bit prefix is allowed for stores only.
    let is_store = matches!(effect, Effect::Stores { .. });
    (is_store || !prefixes.is_16).then_some(Decoded { end: reader.at, effect })
}

/// Decodes the opcodes after 0F.
fn two_bytes(reader: &mut Reader<'_>, prefixes: Prefixes) -> Option<Effect> {
    let opcode = reader.byte()?;
    match opcode {
        0x80..=0x8F => return Some(Effect::Branches { target: reader.target()? }),
        0xC8..=0xCF => return Some(Effect::Writes(prefixes.operand(opcode))),
        _ => {}
    }
    let operands = operands(reader, prefixes)?;
    Some(match (opcode, operands.location) {
        (0xAF, Location::Register(_)) => Effect::Writes(operands.field),
        (0xB7, Location::Register(_)) => Effect::Writes(operands.field),
        (0xB6 | 0xB7, Location::Memory { base, offset }) => {
            let bytes = if opcode == 0xB6 { 1 } else { 2 };
            Effect::Loads { bytes, to: operands.field, base, offset }
        }
        _ => return None,
    })
}

/// Decodes the opcodes with a ModRM byte.
fn with_operands(reader: &mut Reader<'_>, prefixes: Prefixes, opcode: u8) -> Option<Effect> {
    let Operands { field, location } = operands(reader, prefixes)?;
    Some(match (opcode, location) {
        // Two registers: add, or, and, sub, xor, mov.
        (0x89, Location::Register(5)) if field == 4 && prefixes.is_wide() => Effect::Frames,
        (0x89, Location::Register(to)) if prefixes.is_wide() => Effect::Copies { to, from: field },
        (0x01 | 0x09 | 0x21 | 0x29 | 0x31 | 0x89, Location::Register(register)) => Effect::Writes(register),
        (0x39 | 0x85, Location::Register(_)) => Effect::Compares,
        // A 32-bit constant.
        (0x81, Location::Register(register)) => {
            let constant = reader.i32()?;
            match field {
                5 if register == 4 && prefixes.is_wide() => Effect::Reserves(constant),
                0 | 1 | 4 | 5 | 6 => Effect::Writes(register),
                7 => Effect::Compares,
                _ => return None,
            }
        }
        (0x69, Location::Register(_)) => {
            reader.i32()?;
            Effect::Writes(field)
        }
        (0xC7, Location::Register(register)) if field == 0 => {
            reader.i32()?;
            Effect::Writes(register)
        }
        (0xF7, Location::Register(register)) => match field {
            0 => {
                reader.i32()?;
                Effect::Compares
            }
            3 => Effect::Writes(register),
            6 => Effect::Divides,
            _ => return None,
        },
        // Shifts, by a constant and by CL.
        (0xC1, Location::Register(register)) if matches!(field, 4 | 5 | 7) => {
            reader.byte()?;
            Effect::Writes(register)
        }
        (0xD3, Location::Register(register)) if matches!(field, 4 | 5 | 7) => Effect::Writes(register),
        (0xFF, Location::Register(0)) if field == 2 => Effect::CallsRax,
        // Memory.
        (0x8B, Location::Memory { base, offset }) => Effect::Loads { bytes: prefixes.bytes(), to: field, base, offset },
        (0x89, Location::Memory { base, offset }) => Effect::Stores { bytes: prefixes.bytes(), base, offset },
        (0x88, Location::Memory { base, offset }) => Effect::Stores { bytes: 1, base, offset },
        (0xC6, Location::Memory { base, offset }) if field == 0 => {
            reader.byte()?;
            Effect::Stores { bytes: 1, base, offset }
        }
        (0xC7, Location::Memory { base, offset }) if field == 0 => {
            match prefixes.is_16 {
                true => drop(reader.array::<2>()?),
                false => drop(reader.i32()?),
            }
            Effect::Stores { bytes: prefixes.bytes(), base, offset }
        }
        _ => return None,
    })
}
