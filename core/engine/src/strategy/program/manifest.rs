//! The manifest in an object file: name, version and events of the strategy, and the schema of its parameters.
//!
//! It consists of two sections with structures of fixed size that `sdk/namehop_strategy.h` declares: numbers are
//! little-endian, and texts are padded with zeros.

use namehop_ebpf::Refusal;
use namehop_ebpf::object_file::ObjectFile;

use super::context::{EVENTS, PARAMETERS};

/// The section of the function.
pub const PROGRAM_SECTION: &str = "namehop_strategy";
const INFO_SECTION: &str = "namehop_info";
const PARAMETERS_SECTION: &str = "namehop_parameters";

/// Version of the interface that programs are compiled for.
const API_VERSION: u32 = 1;
/// Flag: the program takes the parameters of retransmission suppression.
pub const SUPPRESSES: u32 = 1;
/// Flag: round-trip times of next hops are measured for the program.
pub const MEASURES: u32 = 2;

const NAME_BYTES: usize = 32;
const SUMMARY_BYTES: usize = 88;
const MEANING_BYTES: usize = 96;
const PARAMETER_BYTES: usize = 4 + 4 + 3 * 8 + NAME_BYTES + MEANING_BYTES;

/// The type of a parameter's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Number,
    /// Up to eight numbers from 1 to 255, packed into one.
    List,
}

/// A declared parameter.
#[derive(Debug, Clone)]
pub struct Declared {
    /// Its index among the parameters in the context.
    pub index: usize,
    pub kind: Kind,
    pub default: u64,
    pub min: u64,
    pub max: u64,
    pub key: String,
    pub meaning: String,
}

/// The content of a manifest.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub name: String,
    pub summary: String,
    pub version: u32,
    /// Bits by [`Event`](super::context::Event).
    pub events: u32,
    pub flags: u32,
    pub parameters: Vec<Declared>,
}

fn refuse(reason: impl Into<String>) -> Refusal {
    Refusal { instruction: None, reason: reason.into() }
}

/// Reads the fields of a structure in sequence.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Refusal> {
        let (field, rest) =
            self.0.split_at_checked(bytes).ok_or_else(|| refuse("a description in the object file is truncated"))?;
        self.0 = rest;
        Ok(field)
    }

    fn u32(&mut self) -> Result<u32, Refusal> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(bytes))
    }

    fn u64(&mut self) -> Result<u64, Refusal> {
        let (low, high) = (self.u32()?, self.u32()?);
        Ok(u64::from(low) | u64::from(high) << 32)
    }

    /// Reads a text of printable ASCII.
    fn text(&mut self, bytes: usize) -> Result<String, Refusal> {
        let field = self.take(bytes)?;
        let text = field.split(|&byte| byte == 0).next().unwrap_or_default();
        match text.iter().all(|byte| (0x20..0x7F).contains(byte)) {
            true => Ok(String::from_utf8_lossy(text).into_owned()),
            false => Err(refuse("a text in the object file contains characters other than printable ASCII")),
        }
    }
}

/// Checks the name of a strategy or of a parameter.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    let is_name = (1..NAME_BYTES).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    match is_name {
        true => Ok(()),
        false => {
            Err(refuse(format!("'{name}' is not a valid name: use 1 to 31 lowercase letters, digits and hyphens")))
        }
    }
}

impl Manifest {
    /// Reads the manifest.
    ///
    /// # Errors
    /// If something is missing or invalid; the refusal says what.
    pub fn read(file: &ObjectFile<'_>) -> Result<Self, Refusal> {
        let mut info = Fields(file.section(INFO_SECTION)?);
        if info.0.is_empty() {
            return Err(refuse(
                "the object file has no strategy description: use NAMEHOP_STRATEGY of namehop_strategy.h",
            ));
        }
        let api_version = info.u32()?;
        if api_version != API_VERSION {
            return Err(refuse(format!(
                "the program was built for version {api_version} of the interface, this router has version \
                 {API_VERSION}: rebuild it with namehop_strategy.h of this router"
            )));
        }
        let (events, flags, version) = (info.u32()?, info.u32()?, info.u32()?);
        if events >> EVENTS != 0 || flags & !(SUPPRESSES | MEASURES) != 0 {
            return Err(refuse("the object file uses events or flags that this router does not support"));
        }
        let (name, summary) = (info.text(NAME_BYTES)?, info.text(SUMMARY_BYTES)?);
        check_name(&name)?;
        let mut parameters = Vec::new();
        let (described, rest) = file.section(PARAMETERS_SECTION)?.as_chunks::<PARAMETER_BYTES>();
        if !rest.is_empty() {
            return Err(refuse("a description in the object file is truncated"));
        }
        for described in described {
            let declared = Declared::read(&mut Fields(described))?;
            let is_known = |other: &Declared| other.index == declared.index || other.key == declared.key;
            if parameters.iter().any(is_known) {
                return Err(refuse(format!("parameter {} or its index is declared twice", declared.key)));
            }
            parameters.push(declared);
        }
        Ok(Manifest { name, summary, version, events, flags, parameters })
    }
}

impl Declared {
    fn read(fields: &mut Fields<'_>) -> Result<Self, Refusal> {
        let (index, kind) = (fields.u32()?, fields.u32()?);
        let (default, min, max) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (key, meaning) = (fields.text(NAME_BYTES)?, fields.text(MEANING_BYTES)?);
        check_name(&key)?;
        if key.starts_with("retx-suppression-") {
            return Err(refuse(format!("parameter {key} is reserved: set the flag NAMEHOP_SUPPRESSES instead")));
        }
        let index = usize::try_from(index).ok().filter(|&index| index < PARAMETERS);
        let index = index.ok_or_else(|| refuse(format!("parameter {key}: the index must be below {PARAMETERS}")))?;
        let kind = match kind {
            0 => Kind::Number,
            1 => Kind::List,
            _ => return Err(refuse(format!("parameter {key} has a kind that this router does not support"))),
        };
        if kind == Kind::Number && !(min..=max).contains(&default) {
            return Err(refuse(format!("parameter {key}: the default is outside of the range")));
        }
        Ok(Declared { index, kind, default, min, max, key, meaning })
    }
}
