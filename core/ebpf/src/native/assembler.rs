//! Encodes the x86-64 instructions of translated programs.
//!
//! Every jump has a 32-bit displacement and every address a 32-bit offset. So the length of an instruction does not
//! depend on the values of its operands, and code is laid out in one pass. Source: Intel 64 and IA-32 Architectures
//! Software Developer's Manual, volume 2.

/// A general-purpose register, with its number in encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Register {
    Rax = 0,
    Rcx = 1,
    Rdx = 2,
    Rbx = 3,
    Rsp = 4,
    Rbp = 5,
    Rsi = 6,
    Rdi = 7,
    R8 = 8,
    R9 = 9,
    R10 = 10,
    R11 = 11,
    R13 = 13,
    R14 = 14,
    R15 = 15,
}

impl Register {
    /// The lowest three bits, which go into the ModRM byte or the opcode.
    fn low(self) -> u8 {
        self as u8 & 7
    }

    /// The highest bit, which goes into the REX prefix.
    fn high(self) -> u8 {
        self as u8 >> 3
    }
}

/// Operations of two operands, the first of which is also the result. The value is the opcode for two registers; its
/// bits 3 to 5 select the operation when the second operand is a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Binary {
    Add = 0x01,
    Or = 0x09,
    And = 0x21,
    Subtract = 0x29,
    ExclusiveOr = 0x31,
    Compare = 0x39,
}

/// Shifts, with their number in the ModRM byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Shift {
    Left = 4,
    Right = 5,
    RightSigned = 7,
}

/// Conditions of branches, with their number in the opcode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Flag {
    Below = 0x2,
    AboveOrEqual = 0x3,
    Equal = 0x4,
    NotEqual = 0x5,
    BelowOrEqual = 0x6,
    Above = 0x7,
    Less = 0xC,
    GreaterOrEqual = 0xD,
    LessOrEqual = 0xE,
    Greater = 0xF,
}

/// A position in the code that jumps can refer to before it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// Code that grows at its end.
#[derive(Debug, Default)]
pub struct Assembler {
    bytes: Vec<u8>,
    /// Offsets of the labels, once they are placed.
    labels: Vec<Option<usize>>,
    /// Offsets of displacements, and the labels that they refer to.
    jumps: Vec<(usize, Label)>,
}

/// Selects 64-bit operands in a REX prefix.
const WIDE: u8 = 0x48;
const REX: u8 = 0x40;

impl Assembler {
    /// Length of the code so far in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn new_label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places a label at the current end of the code. Each label is placed once.
    pub fn bind(&mut self, label: Label) {
        debug_assert!(self.labels[label.0].is_none(), "a label must be placed once");
        self.labels[label.0] = Some(self.bytes.len());
    }

    /// Fills in the displacements and returns the code.
    ///
    /// # Errors
    /// If a label was never placed, or is too far away.
    pub fn finish(mut self) -> Result<Vec<u8>, &'static str> {
        for &(at, label) in &self.jumps {
            let target = self.labels[label.0].ok_or("jump to a label that was not placed")?;
            // Displacements count from the end of the jump, which is the end of the displacement.
            let displacement = i32::try_from(target as i64 - (at as i64 + 4)).map_err(|_| "jump target is too far")?;
            self.bytes[at..at + 4].copy_from_slice(&displacement.to_le_bytes());
        }
        Ok(self.bytes)
    }

    fn emit(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn emit_i32(&mut self, value: i32) {
        self.emit(&value.to_le_bytes());
    }

    /// Emits a REX prefix if needed; `field` and `operand` are the registers in the ModRM byte.
    fn rex(&mut self, is_wide: bool, field: u8, operand: Register) {
        let prefix = if is_wide { WIDE } else { REX } | (field >> 3) << 2 | operand.high();
        if prefix != REX {
            self.emit(&[prefix]);
        }
    }

    /// Emits an instruction on a register: prefix, opcode and ModRM byte. `field` is the other register, or a part of
    /// the opcode.
    fn on_register(&mut self, is_wide: bool, opcode: &[u8], field: u8, operand: Register) {
        self.rex(is_wide, field, operand);
        self.emit(opcode);
        self.emit(&[0xC0 | (field & 7) << 3 | operand.low()]);
    }

    /// Emits an instruction on memory: prefix, opcode, ModRM byte and offset.
    fn on_memory(&mut self, is_wide: bool, opcode: &[u8], field: u8, base: Register, offset: i32) {
        debug_assert_ne!(base.low(), Register::Rsp.low(), "this base needs a SIB byte");
        self.rex(is_wide, field, base);
        self.emit(opcode);
        self.emit(&[0x80 | (field & 7) << 3 | base.low()]);
        self.emit_i32(offset);
    }

    /// Marks a valid target of indirect calls (ENDBR64).
    pub fn entry_mark(&mut self) {
        self.emit(&[0xF3, 0x0F, 0x1E, 0xFA]);
    }

    pub fn push(&mut self, register: Register) {
        self.rex(false, 0, register);
        self.emit(&[0x50 | register.low()]);
    }

    pub fn pop(&mut self, register: Register) {
        self.rex(false, 0, register);
        self.emit(&[0x58 | register.low()]);
    }

    /// Removes the frame: RSP = RBP, then pops RBP.
    pub fn leave(&mut self) {
        self.emit(&[0xC9]);
    }

    pub fn ret(&mut self) {
        self.emit(&[0xC3]);
    }

    /// Calls the function at the address in RAX.
    pub fn call_rax(&mut self) {
        self.emit(&[0xFF, 0xD0]);
    }

    pub fn move_register(&mut self, is_wide: bool, to: Register, from: Register) {
        self.on_register(is_wide, &[0x89], from as u8, to);
    }

    /// `to = value`, with the shortest encoding.
    pub fn move_constant(&mut self, to: Register, value: u64) {
        if let Ok(value) = u32::try_from(value) {
            self.rex(false, 0, to);
            self.emit(&[0xB8 | to.low()]);
            self.emit(&value.to_le_bytes());
        } else if let Ok(value) = i32::try_from(value as i64) {
            self.on_register(true, &[0xC7], 0, to);
            self.emit_i32(value);
        } else {
            self.move_constant_64(to, value);
        }
    }

    /// `to = value`, with all 64 bits in the instruction.
    pub fn move_constant_64(&mut self, to: Register, value: u64) {
        self.rex(true, 0, to);
        self.emit(&[0xB8 | to.low()]);
        self.emit(&value.to_le_bytes());
    }

    pub fn binary(&mut self, kind: Binary, is_wide: bool, left: Register, right: Register) {
        self.on_register(is_wide, &[kind as u8], right as u8, left);
    }

    /// The constant is sign-extended.
    pub fn binary_constant(&mut self, kind: Binary, is_wide: bool, left: Register, right: i32) {
        self.on_register(is_wide, &[0x81], kind as u8 >> 3, left);
        self.emit_i32(right);
    }

    /// Sets the flags from the bitwise AND.
    pub fn test(&mut self, is_wide: bool, left: Register, right: Register) {
        self.on_register(is_wide, &[0x85], right as u8, left);
    }

    pub fn test_constant(&mut self, is_wide: bool, left: Register, right: i32) {
        self.on_register(is_wide, &[0xF7], 0, left);
        self.emit_i32(right);
    }

    pub fn multiply(&mut self, is_wide: bool, left: Register, right: Register) {
        self.on_register(is_wide, &[0x0F, 0xAF], left as u8, right);
    }

    pub fn multiply_constant(&mut self, is_wide: bool, left: Register, right: i32) {
        self.on_register(is_wide, &[0x69], left as u8, left);
        self.emit_i32(right);
    }

    pub fn negate(&mut self, is_wide: bool, register: Register) {
        self.on_register(is_wide, &[0xF7], 3, register);
    }

    /// Divides RDX:RAX; the quotient goes into RAX and the remainder into RDX.
    pub fn divide(&mut self, is_wide: bool, divisor: Register) {
        self.on_register(is_wide, &[0xF7], 6, divisor);
    }

    pub fn shift(&mut self, kind: Shift, is_wide: bool, register: Register, distance: u8) {
        self.on_register(is_wide, &[0xC1], kind as u8, register);
        self.emit(&[distance]);
    }

    /// Shifts by the number in CL, modulo the width.
    pub fn shift_by_cl(&mut self, kind: Shift, is_wide: bool, register: Register) {
        self.on_register(is_wide, &[0xD3], kind as u8, register);
    }

    /// Reverses the bytes of a register.
    pub fn swap_bytes(&mut self, is_wide: bool, register: Register) {
        self.rex(is_wide, 0, register);
        self.emit(&[0x0F, 0xC8 | register.low()]);
    }

    /// Keeps the lowest 16 bits.
    pub fn keep_16(&mut self, register: Register) {
        self.on_register(false, &[0x0F, 0xB7], register as u8, register);
    }

    /// Loads 1, 2, 4 or 8 bytes and clears the upper bits.
    pub fn load(&mut self, bytes: u8, to: Register, base: Register, offset: i32) {
        match bytes {
            1 => self.on_memory(false, &[0x0F, 0xB6], to as u8, base, offset),
            2 => self.on_memory(false, &[0x0F, 0xB7], to as u8, base, offset),
            4 => self.on_memory(false, &[0x8B], to as u8, base, offset),
            _ => self.on_memory(true, &[0x8B], to as u8, base, offset),
        }
    }

    /// Stores the lowest 1, 2, 4 or 8 bytes.
    pub fn store(&mut self, bytes: u8, base: Register, offset: i32, from: Register) {
        match bytes {
            1 => {
                // With a REX prefix, register numbers 4 to 7 are the lowest bytes of RSP to RDI, like the other
                // numbers.
                self.emit(&[REX | from.high() << 2 | base.high(), 0x88, 0x80 | from.low() << 3 | base.low()]);
                self.emit_i32(offset);
            }
            2 => {
                self.emit(&[0x66]);
                self.on_memory(false, &[0x89], from as u8, base, offset);
            }
            4 => self.on_memory(false, &[0x89], from as u8, base, offset),
            _ => self.on_memory(true, &[0x89], from as u8, base, offset),
        }
    }

    /// Stores the lowest 1, 2, 4 or 8 bytes of a sign-extended constant.
    pub fn store_constant(&mut self, bytes: u8, base: Register, offset: i32, value: i32) {
        match bytes {
            1 => {
                self.on_memory(false, &[0xC6], 0, base, offset);
                self.emit(&[value as u8]);
            }
            2 => {
                self.emit(&[0x66]);
                self.on_memory(false, &[0xC7], 0, base, offset);
                self.emit(&(value as u16).to_le_bytes());
            }
            _ => {
                self.on_memory(bytes == 8, &[0xC7], 0, base, offset);
                self.emit_i32(value);
            }
        }
    }

    pub fn jump(&mut self, to: Label) {
        self.emit(&[0xE9]);
        self.displacement(to);
    }

    pub fn branch(&mut self, flag: Flag, to: Label) {
        self.emit(&[0x0F, 0x80 | flag as u8]);
        self.displacement(to);
    }

    fn displacement(&mut self, to: Label) {
        self.jumps.push((self.bytes.len(), to));
        self.emit_i32(0);
    }
}
