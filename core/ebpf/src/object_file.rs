//! Object files: ELF files that a C compiler has made for the target `bpf`.
//!
//! The file has one section with instructions, in which calls of helpers refer to undefined symbols, and sections
//! with descriptions that the caller requests by name. All other sections are ignored: debug information, the
//! licence, the compiler's notes.

use object::read::elf::ElfFile64;
use object::{Architecture, Endianness, Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionKind};

use crate::instruction::{INSTRUCTION_BYTES, Instruction, PSEUDO_CALL};
use crate::{Helper, Refusal};

/// Maximum size of an object file in bytes.
pub const MAX_BYTES: usize = 65_536;
/// Operation code of a call.
const CALL: u8 = 0x85;

/// An object file.
#[derive(Debug)]
pub struct ObjectFile<'data> {
    file: ElfFile64<'data, Endianness>,
}

impl<'data> ObjectFile<'data> {
    /// Reads the headers of a file.
    ///
    /// # Errors
    /// If the file is too large, not an ELF file, or for another CPU.
    pub fn parse(bytes: &'data [u8]) -> Result<Self, Refusal> {
        if bytes.len() > MAX_BYTES {
            return Err(Refusal::whole(format!("the file has {} bytes, at most {MAX_BYTES} are allowed", bytes.len())));
        }
        let file = ElfFile64::<Endianness>::parse(bytes)
            .map_err(|error| Refusal::whole(format!("not an object file: {error}")))?;
        if file.architecture() != Architecture::Bpf {
            return Err(Refusal::whole("not an eBPF object file: compile with `clang -target bpf`"));
        }
        if !file.is_little_endian() {
            return Err(Refusal::whole("the program has the wrong byte order: compile with `clang -target bpfel`"));
        }
        Ok(ObjectFile { file })
    }

    /// Returns the bytes of the section with this name; empty if there is none.
    ///
    /// # Errors
    /// If the file ends inside the section, or the section refers to others.
    pub fn section(&self, name: &str) -> Result<&'data [u8], Refusal> {
        let Some(section) = self.file.section_by_name(name) else { return Ok(&[]) };
        if section.relocations().next().is_some() {
            return Err(Refusal::whole(format!("section {name} has relocations, which are not supported")));
        }
        section.data().map_err(|error| Refusal::whole(format!("section {name}: {error}")))
    }

    /// Returns the instructions of the section with this name. Calls hold indexes into `helpers`.
    ///
    /// # Errors
    /// If there is no such section, or it refers to something other than a helper.
    pub fn program(&self, name: &str, helpers: &[Helper]) -> Result<Vec<Instruction>, Refusal> {
        let section = self
            .file
            .section_by_name(name)
            .filter(|section| section.kind() == SectionKind::Text)
            .ok_or_else(|| Refusal::whole(format!("no program found: its function must be in section {name}")))?;
        let data = section.data().map_err(|error| Refusal::whole(format!("section {name}: {error}")))?;
        let (encoded, rest) = data.as_chunks::<INSTRUCTION_BYTES>();
        if !rest.is_empty() {
            return Err(Refusal::whole(format!("section {name} ends inside an instruction")));
        }
        let mut program: Vec<Instruction> = encoded.iter().map(|&bytes| Instruction::from_bytes(bytes)).collect();
        for (offset, relocation) in section.relocations() {
            let at = usize::try_from(offset).unwrap_or(usize::MAX) / INSTRUCTION_BYTES;
            let symbol = match relocation.target() {
                RelocationTarget::Symbol(index) => self.file.symbol_by_index(index).ok(),
                _ => None,
            };
            let symbol = symbol.ok_or_else(|| Refusal::at(at, "damaged relocation"))?;
            let symbol_name = symbol.name().unwrap_or_default();
            let instruction = program.get_mut(at).ok_or_else(|| Refusal::at(at, "damaged relocation"))?;
            if instruction.code != CALL || instruction.source != PSEUDO_CALL {
                return Err(Refusal::at(
                    at,
                    format!("global variable {symbol_name}: programs cannot have any; use the scratch memory"),
                ));
            }
            if !symbol.is_undefined() {
                return Err(Refusal::at(
                    at,
                    format!("call of {symbol_name}: mark it `static inline` with `__attribute__((always_inline))`"),
                ));
            }
            let helper = helpers
                .iter()
                .position(|helper| helper.name() == symbol_name)
                .ok_or_else(|| Refusal::at(at, format!("there is no helper {symbol_name}")))?;
            instruction.source = 0;
            instruction.immediate = helper as i32;
        }
        // A call without a relocation has a number chosen by the compiler or by the author.
        Ok(program)
    }
}
