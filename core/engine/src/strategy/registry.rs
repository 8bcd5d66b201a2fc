//! Registry of strategies by name, and parsing of strategy names.
//!
//! A strategy is chosen by a name: `/localhost/nfd/strategy/<strategy>[/<version>[/<key>~<value>...]]` (NFD Management
//! Protocol, "Strategy Choice"). Without a version the newest is meant; with one, that version or the next higher.
//! There is one version of each strategy, so an older number selects it and a newer one selects none.

use std::sync::Arc;

use namehop_wire::name::NameUriError;
use namehop_wire::{Name, NameRef};

use super::Strategy;
use super::built_in::{BuiltIn, STRATEGIES};
use super::parameter::{self, ParameterError, ParameterInfo};
use super::program::{ProgramInstance, StrategyProgram};

/// The components in front of the strategy's own.
const PREFIX: [&str; 3] = ["localhost", "nfd", "strategy"];

/// Maximum number of programs loaded at a time.
pub const MAX_PROGRAMS: usize = 32;

/// The reason why a strategy name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// No strategy has this name and version.
    #[error("no such strategy")]
    NotFound,
    /// The strategy exists but refuses its parameters; the text says which and why.
    #[error("{0}")]
    BadParameters(String),
}

/// The reason why a loaded program cannot be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramRefused {
    /// A built-in strategy has its name.
    #[error("{0} is the name of a built-in strategy: load the program under another name")]
    BuiltInName(String),
    /// As many programs as possible are loaded.
    #[error("{MAX_PROGRAMS} strategies are loaded already: unload one first")]
    TooMany,
}

/// Completes a strategy name: without a leading slash it is relative to `/localhost/nfd/strategy`.
///
/// # Errors
/// If the URI is invalid. The existence of the strategy is not checked.
pub fn full_name(text: &str) -> Result<Name, NameUriError> {
    if text.starts_with('/') { text.parse() } else { format!("/{}/{text}", PREFIX.join("/")).parse() }
}

/// Returns all parameters, each with the names of the strategies that have it.
pub fn all_parameters() -> Vec<(ParameterInfo, Vec<&'static str>)> {
    let mut all: Vec<(ParameterInfo, Vec<&'static str>)> = Vec::new();
    for info in STRATEGIES {
        for parameter in info.parameters() {
            match all.iter_mut().find(|(known, _)| *known == parameter) {
                Some((_, strategies)) => strategies.push(info.name),
                None => all.push((parameter, vec![info.name])),
            }
        }
    }
    all
}

/// Creates a strategy from values given as (key, value).
type Read = fn(&[(&str, &str)]) -> Result<BuiltIn, ParameterError>;

/// A strategy that can be chosen, without parameter values.
#[derive(Debug)]
pub struct StrategyInfo {
    /// Its name component.
    pub name: &'static str,
    /// Its version.
    pub version: u64,
    /// One line of help.
    pub summary: &'static str,
    parameters: fn() -> Vec<ParameterInfo>,
    defaults: fn() -> BuiltIn,
    read: Read,
}

impl StrategyInfo {
    pub(super) const fn new<S: Strategy>(defaults: fn() -> BuiltIn, read: Read) -> Self {
        StrategyInfo {
            name: S::NAME,
            version: S::VERSION,
            summary: S::SUMMARY,
            parameters: parameter::describe::<S>,
            defaults,
            read,
        }
    }

    /// Returns the strategy with default parameters.
    pub fn with_defaults(&self) -> StrategyInstance {
        StrategyInstance {
            inner: Arc::new(Inner { name: self.versioned_name(), strategy: Chosen::BuiltIn((self.defaults)()) }),
        }
    }

    /// Returns its parameters.
    pub fn parameters(&self) -> Vec<ParameterInfo> {
        (self.parameters)()
    }

    /// Returns the name with version and without parameters.
    pub fn versioned_name(&self) -> Name {
        versioned_name(self.name, self.version)
    }
}

/// A strategy that was found by its name, before its parameters are parsed.
enum Found<'a> {
    BuiltIn(&'static StrategyInfo),
    Program(&'a Arc<StrategyProgram>),
}

impl Found<'_> {
    fn name_and_version(&self) -> (&str, u64) {
        match self {
            Found::BuiltIn(info) => (info.name, info.version),
            Found::Program(program) => (program.name(), program.version()),
        }
    }

    fn read(&self, values: &[(&str, &str)]) -> Result<Chosen, ParameterError> {
        match self {
            Found::BuiltIn(info) => (info.read)(values).map(Chosen::BuiltIn),
            Found::Program(program) => {
                ProgramInstance::new(Arc::clone(program), values).map(|instance| Chosen::Program(Box::new(instance)))
            }
        }
    }

    /// Returns the error that the strategy refuses its parameters, with all that it takes.
    fn bad(&self, reason: &ParameterError) -> StrategyError {
        let (name, version) = self.name_and_version();
        let parameters = match self {
            Found::BuiltIn(info) => info.parameters(),
            Found::Program(program) => program.parameters(),
        };
        let takes = if parameters.is_empty() { "takes no parameters" } else { "takes:" };
        let mut text = format!("{reason}. {name} v{version} {takes}");
        for (index, ParameterInfo { key, default, min, max, meaning }) in parameters.iter().enumerate() {
            let separator = if index == 0 { "" } else { ";" };
            text.push_str(&format!("{separator} {key} (default {default}, {min} to {max}): {meaning}"));
        }
        StrategyError::BadParameters(text)
    }
}

pub(super) fn versioned_name(name: &str, version: u64) -> Name {
    PREFIX.iter().fold(Name::new(), Name::append_generic).append_generic(name).append_version(version)
}

/// The strategies that can be chosen: the built-in ones, and loaded programs.
#[derive(Debug, Default)]
pub struct StrategyRegistry {
    programs: Vec<Arc<StrategyProgram>>,
}

impl StrategyRegistry {
    /// Returns the loaded programs.
    pub fn programs(&self) -> &[Arc<StrategyProgram>] {
        &self.programs
    }

    /// Returns the loaded program of this name.
    pub fn program(&self, name: &str) -> Option<&Arc<StrategyProgram>> {
        self.programs.iter().find(|program| program.name() == name)
    }

    /// Adds a program, and replaces the one with its name.
    ///
    /// # Errors
    /// If the program has the name of a built-in strategy, or too many are loaded.
    pub fn insert(&mut self, program: Arc<StrategyProgram>) -> Result<(), ProgramRefused> {
        if STRATEGIES.iter().any(|info| info.name == program.name()) {
            return Err(ProgramRefused::BuiltInName(program.name().to_owned()));
        }
        match self.programs.iter().position(|other| other.name() == program.name()) {
            Some(position) => self.programs[position] = program,
            None if self.programs.len() >= MAX_PROGRAMS => {
                return Err(ProgramRefused::TooMany);
            }
            None => self.programs.push(program),
        }
        Ok(())
    }

    /// Removes the program of this name; returns `None` if there is none.
    pub fn remove(&mut self, name: &str) -> Option<Arc<StrategyProgram>> {
        let position = self.programs.iter().position(|program| program.name() == name)?;
        Some(self.programs.remove(position))
    }

    fn find(&self, name: &[u8]) -> Option<Found<'_>> {
        let built_in = STRATEGIES.iter().find(|info| info.name.as_bytes() == name).map(Found::BuiltIn);
        built_in.or_else(|| self.programs.iter().find(|program| program.name().as_bytes() == name).map(Found::Program))
    }

    /// Parses a strategy name.
    ///
    /// # Errors
    /// [`StrategyError::NotFound`] if there is no such strategy, or not in such a high version;
    /// [`StrategyError::BadParameters`] if a parameter is unknown, given twice, or has an invalid value.
    pub fn parse(&self, name: NameRef<'_>) -> Result<StrategyInstance, StrategyError> {
        let mut components = name.components();
        for expected in PREFIX {
            if !components
                .next()
                .is_some_and(|component| component.is_generic() && component.value == expected.as_bytes())
            {
                return Err(StrategyError::NotFound);
            }
        }
        let found = components
            .next()
            .filter(|component| component.is_generic())
            .and_then(|component| self.find(component.value))
            .ok_or(StrategyError::NotFound)?;
        let (known_name, known_version) = found.name_and_version();
        let mut full_name = versioned_name(known_name, known_version);
        if let Some(version) = components.next() {
            let version = version.as_version().ok_or_else(|| {
                StrategyError::BadParameters(format!(
                    "'{version}' is not a version: write parameters after the version, as in {}/<key>~<value>",
                    full_name
                ))
            })?;
            if version > known_version {
                return Err(StrategyError::NotFound);
            }
        }
        let mut values = Vec::new();
        for component in components {
            let pair = std::str::from_utf8(component.value)
                .ok()
                .filter(|_| component.is_generic())
                .and_then(|text| text.split_once('~'))
                .ok_or_else(|| found.bad(&ParameterError::Form(component.to_string())))?;
            values.push(pair);
            full_name.push(component);
        }
        let strategy = found.read(&values).map_err(|reason| found.bad(&reason))?;
        Ok(StrategyInstance { inner: Arc::new(Inner { name: full_name, strategy }) })
    }
}

#[derive(Debug, PartialEq)]
struct Inner {
    name: Name,
    strategy: Chosen,
}

/// The implementation that handles the triggers.
#[derive(Debug, PartialEq)]
pub(super) enum Chosen {
    BuiltIn(BuiltIn),
    Program(Box<ProgramInstance>),
}

/// A chosen strategy with its parameters. Cloning is cheap.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyInstance {
    inner: Arc<Inner>,
}

impl StrategyInstance {
    /// Parses the name of a built-in strategy; see [`StrategyRegistry::parse`].
    ///
    /// # Errors
    /// The same as there.
    pub fn parse(name: NameRef<'_>) -> Result<Self, StrategyError> {
        StrategyRegistry::default().parse(name)
    }

    /// Returns the full name with version and the given parameters.
    pub fn name(&self) -> &Name {
        &self.inner.name
    }

    /// Returns whether the strategy does more with Data than send it to all downstreams.
    pub fn wants_data(&self) -> bool {
        match &self.inner.strategy {
            Chosen::BuiltIn(strategy) => strategy.wants_data(),
            Chosen::Program(instance) => instance.wants_data(),
        }
    }

    /// Returns the same choice with another program in place of the chosen one.
    ///
    /// # Errors
    /// If the program has a lower version, or refuses the parameters.
    pub fn with_program(&self, program: Arc<StrategyProgram>) -> Result<Self, StrategyError> {
        // A saved choice contains the version, and would not find a lower one.
        if self.program().is_some_and(|chosen| chosen.version() > program.version()) {
            return Err(StrategyError::NotFound);
        }
        let mut name = versioned_name(program.name(), program.version());
        for parameter in self.name().as_ref().components().skip(name.len()) {
            name.push(parameter);
        }
        StrategyRegistry { programs: vec![program] }.parse(name.as_ref())
    }

    /// Returns the loaded program, if the strategy is one.
    pub fn program(&self) -> Option<&Arc<StrategyProgram>> {
        match &self.inner.strategy {
            Chosen::BuiltIn(_) => None,
            Chosen::Program(instance) => Some(instance.program()),
        }
    }

    #[inline]
    pub(super) fn strategy(&self) -> &Chosen {
        &self.inner.strategy
    }
}

impl Default for StrategyInstance {
    /// Returns the first of [`STRATEGIES`], with default parameters.
    fn default() -> Self {
        STRATEGIES[0].with_defaults()
    }
}

#[cfg(test)]
#[path = "tests/registry.rs"]
mod tests;
