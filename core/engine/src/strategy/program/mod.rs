//! Strategies that are eBPF programs, loaded at run time.
//!
//! A program is an object file with its name, version, events and parameters in separate sections ([`manifest`]). It is
//! called like a built-in strategy, with its own context ([`context`]), and acts through helper functions
//! ([`helpers`]), which use the same [`StrategyContext`]. The C side is `sdk/namehop_strategy.h`; a test checks that
//! both sides agree.

mod context;
mod helpers;
mod manifest;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use namehop_ebpf::blame;
use namehop_ebpf::object_file::ObjectFile;
use namehop_ebpf::{Code, Refusal, Verified, verify};

use namehop_wire::Name;

use super::context::{StrategyContext, Trigger};
use super::measurements::{ScratchOwner, record_answer};
use super::nack::process_nack;
use super::parameter::{ByteList, Parameter, ParameterError, ParameterInfo, Parameters};
use super::registry::versioned_name;
use super::suppression::ExponentialSuppression;
use context::{Event, PARAMETERS, run};
use helpers::INTERFACE;
use manifest::{Kind, MEASURES, Manifest, SUPPRESSES};

/// Lifetime of the round-trip times of an unused next hop, as in the strategy asf.
const MEASUREMENTS_LIFETIME_MS: u64 = 300_000;

/// Maximum size of an object file, in bytes.
pub use namehop_ebpf::object_file::MAX_BYTES as MAX_OBJECT_FILE_BYTES;

/// A loaded program, without parameter values.
pub struct StrategyProgram {
    name: String,
    manifest: Manifest,
    code: Code,
    owner: ScratchOwner,
}

impl fmt::Debug for StrategyProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StrategyProgram").field("name", &self.name).field("code", &self.code).finish_non_exhaustive()
    }
}

impl StrategyProgram {
    /// Reads and verifies an object file, and translates its program to native code if possible. `name` replaces the
    /// name in the file.
    ///
    /// # Errors
    /// If the file or its program is refused; the refusal says why.
    pub fn load(object: &[u8], name: Option<&str>) -> Result<Arc<Self>, Refusal> {
        Self::load_as(object, name, Code::new)
    }

    /// Loads a program like [`StrategyProgram::load`]; `form` determines how it runs.
    fn load_as(object: &[u8], name: Option<&str>, form: fn(Verified, &str) -> Code) -> Result<Arc<Self>, Refusal> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let file = ObjectFile::parse(object)?;
        let manifest = Manifest::read(&file)?;
        let name = name.unwrap_or(&manifest.name);
        manifest::check_name(name)?;
        let name = name.to_owned();
        let verified = verify(&file.program(manifest::PROGRAM_SECTION, INTERFACE.helpers)?, &INTERFACE)?;
        let code = form(verified, &label(&name, object));
        let owner = ScratchOwner::program(NEXT.fetch_add(1, Ordering::Relaxed));
        Ok(Arc::new(StrategyProgram { name, manifest, code, owner }))
    }

    /// Returns its name component.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its version.
    pub fn version(&self) -> u64 {
        u64::from(self.manifest.version)
    }

    /// Returns the name with version and without parameters, by which it is chosen.
    pub fn versioned_name(&self) -> Name {
        versioned_name(&self.name, self.version())
    }

    /// Returns one line of help.
    pub fn summary(&self) -> &str {
        &self.manifest.summary
    }

    /// Returns why it is interpreted, which is slower; `None` if it runs as native code.
    pub fn interpreted_because(&self) -> Option<&str> {
        self.code.interpreted_because()
    }

    /// Returns its parameters.
    pub fn parameters(&self) -> Vec<ParameterInfo> {
        Values::of(&self.manifest).parameters(&self.manifest).describe()
    }
}

/// Returns the text that identifies a program if it crashes the router (see [`blame`]): its name, and a checksum of its
/// object file.
pub fn label(name: &str, object: &[u8]) -> String {
    format!("{name} {:08x}", crc32c::crc32c(object))
}

/// The parameter values of a program.
struct Values {
    numbers: [u64; PARAMETERS],
    lists: [ByteList; PARAMETERS],
    suppression: ExponentialSuppression,
}

impl Values {
    /// Returns the defaults.
    fn of(manifest: &Manifest) -> Self {
        let mut values = Values {
            numbers: [0; PARAMETERS],
            lists: [ByteList::default(); PARAMETERS],
            suppression: ExponentialSuppression::default(),
        };
        for declared in &manifest.parameters {
            values.numbers[declared.index] = declared.default;
        }
        values
    }

    fn parameters<'a>(&'a mut self, manifest: &'a Manifest) -> Parameters<'a> {
        let mut own = Vec::new();
        let fields = self.numbers.iter_mut().zip(&mut self.lists).enumerate();
        for (index, (number, list)) in fields {
            let Some(declared) = manifest.parameters.iter().find(|declared| declared.index == index) else { continue };
            own.push(match declared.kind {
                Kind::Number => Parameter::new(&declared.key, number, declared.min..=declared.max, &declared.meaning),
                Kind::List => {
                    Parameter::new(&declared.key, list, ByteList::ALL_LEAST..=ByteList::ALL_GREATEST, &declared.meaning)
                }
            });
        }
        let own = Parameters::from(own);
        if manifest.flags & SUPPRESSES == 0 { own } else { own.and_suppression(&mut self.suppression) }
    }
}

/// A loaded program with its parameters.
#[derive(Debug)]
pub(super) struct ProgramInstance {
    program: Arc<StrategyProgram>,
    parameters: [u64; PARAMETERS],
    suppression: ExponentialSuppression,
}

impl PartialEq for ProgramInstance {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.program, &other.program)
            && (self.parameters, self.suppression) == (other.parameters, other.suppression)
    }
}

impl ProgramInstance {
    /// Creates an instance with these values, given as (key, value), and defaults for all other parameters.
    pub(super) fn new(program: Arc<StrategyProgram>, given: &[(&str, &str)]) -> Result<Self, ParameterError> {
        let mut values = Values::of(&program.manifest);
        values.parameters(&program.manifest).assign(given)?;
        for declared in program.manifest.parameters.iter().filter(|declared| declared.kind == Kind::List) {
            values.numbers[declared.index] = values.lists[declared.index].packed();
        }
        Ok(ProgramInstance { program, parameters: values.numbers, suppression: values.suppression })
    }

    pub(super) fn program(&self) -> &Arc<StrategyProgram> {
        &self.program
    }

    fn wants(&self, event: Event) -> bool {
        self.program.manifest.events & 1 << event as u32 != 0
    }

    fn measures(&self) -> bool {
        self.program.manifest.flags & MEASURES != 0
    }

    pub(super) fn wants_data(&self) -> bool {
        self.wants(Event::Data) || self.measures()
    }

    /// Makes the program handle a trigger. Events that it does not subscribe to are handled by default.
    pub(super) fn handle<C: StrategyContext>(&self, trigger: Trigger, ctx: &mut C) {
        let call = |event: Event, subject, ctx: &mut C| {
            if self.wants(event) {
                run(self, event, subject, ctx);
            }
        };
        match trigger {
            Trigger::AfterReceiveInterest => call(Event::Interest, 0, ctx),
            Trigger::AfterReceiveData | Trigger::BeforeSatisfyInterest => {
                if self.measures() {
                    record_answer(ctx, MEASUREMENTS_LIFETIME_MS);
                }
                call(Event::Data, 0, ctx);
                if trigger == Trigger::AfterReceiveData {
                    ctx.send_data_to_all();
                }
            }
            Trigger::AfterReceiveNack(reason) => match self.wants(Event::Nack) {
                true => run(self, Event::Nack, reason.0, ctx),
                false => process_nack(ctx),
            },
            Trigger::OnDroppedInterest(nexthop) => call(Event::Dropped, u64::from(nexthop.0), ctx),
            Trigger::AfterNewNextHop(nexthop) => call(Event::NewNextHop, u64::from(nexthop.face.0), ctx),
            Trigger::Timer => call(Event::Timer, 0, ctx),
            Trigger::BeforeExpirePendingInterest => call(Event::Expiry, 0, ctx),
        }
    }
}
