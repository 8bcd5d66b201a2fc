//! Sections `[[strategy]]` and `[[loaded_strategy]]`: strategy choices at start, and eBPF strategies to load.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use namehop_engine::strategy::program::MAX_OBJECT_FILE_BYTES;
use namehop_engine::strategy::{STRATEGIES, StrategyProgram, StrategyRegistry};
use namehop_wire::Name;

use crate::Config;
use crate::environment::unreadable;
use crate::fault::Fault;
use crate::settings::settings;
use crate::values::{NameText, StrategyText};

settings! {
    /// A strategy to choose at start.
    pub element StaticStrategy {
        /// Names under this prefix …
        pub prefix: NameText, example "\"/example\"";
        /// … are forwarded by this strategy, with parameters if wanted: one of the router (`namehop strategy set
        /// --help` lists them), or a loaded one.
        pub strategy: StrategyText, example "\"asf/v=5/probing-interval~30000\"";
    }
}

settings! {
    /// A strategy to load at start: an eBPF object file of at most 65536 bytes, compiled from C with clang; see
    /// docs/strategies.md. The router reports errors in it at start, as does `namehop config check`. A strategy loaded
    /// at run time under the same name replaces the one listed here.
    pub element LoadedStrategy {
        /// Name by which `[[strategy]]` and commands choose it.
        pub name: String, example "\"hedge\"";
        /// The object file.
        pub file: PathBuf, example "\"/etc/namehop/hedge.o\"";
    }
}

impl LoadedStrategy {
    /// Reads the object file.
    ///
    /// # Errors
    /// The file cannot be read or is too long; the text names it.
    pub fn read(&self) -> Result<Vec<u8>, String> {
        let shown = self.file.display();
        let object = read_at_most(&self.file, MAX_OBJECT_FILE_BYTES + 1);
        let object = object.map_err(|error| format!("cannot read {shown}: {}", unreadable(&self.file, &error)))?;
        if object.len() > MAX_OBJECT_FILE_BYTES {
            return Err(format!(
                "{shown} is longer than {MAX_OBJECT_FILE_BYTES} bytes; compile it without -g, or run llvm-strip -g on \
                 it"
            ));
        }
        Ok(object)
    }
}

fn read_at_most(file: &Path, bytes: usize) -> io::Result<Vec<u8>> {
    let mut object = Vec::new();
    File::open(file)?.take(bytes as u64).read_to_end(&mut object)?;
    Ok(object)
}

impl Config {
    /// Returns the first error in names of strategies. Does not read the object files.
    pub(crate) fn strategy_fault(&self) -> Option<Fault> {
        let loaded = &self.loaded_strategy;
        let twice = loaded.iter().enumerate().find(|&(index, strategy)| {
            loaded[..index].iter().any(|other| other.name == strategy.name)
                || STRATEGIES.iter().any(|info| info.name == strategy.name)
        });
        if let Some((index, LoadedStrategy { name, .. })) = twice {
            let message = format!("another strategy has the name `{name}`; choose an unused name");
            return Some(Fault::new(format!("loaded_strategy[{index}].name"), message));
        }
        let is_known = |name: &Name| {
            StrategyRegistry::default().parse(name.as_ref()).is_ok()
                || loaded.iter().any(|strategy| strategy_component(name) == Some(strategy.name.as_bytes()))
        };
        let index = self.strategy.iter().position(|choice| !is_known(&choice.strategy.0))?;
        let message = format!(
            "strategy `{}`: no such strategy; `namehop strategy set --help` lists the built-in strategies, and \
             [[loaded_strategy]] loads others",
            self.strategy[index].strategy.0
        );
        Some(Fault::new(format!("strategy[{index}].strategy"), message))
    }

    /// Loads the strategies as a test, and checks the strategy choices against them. Returns the first error.
    pub(crate) fn loaded_strategy_fault(&self) -> Option<Fault> {
        let mut strategies = StrategyRegistry::default();
        for (index, loaded) in self.loaded_strategy.iter().enumerate() {
            let fault =
                |key: &str, message: String| Some(Fault::with_key(format!("loaded_strategy[{index}].{key}"), &message));
            let object = match loaded.read() {
                Ok(object) => object,
                Err(message) => return fault("file", message),
            };
            match StrategyProgram::load(&object, Some(&loaded.name)) {
                Err(error) => return fault("file", format!("{}: {error}", loaded.file.display())),
                Ok(program) => {
                    if let Err(error) = strategies.insert(program) {
                        return fault("name", error.to_string());
                    }
                }
            }
        }
        self.strategy.iter().enumerate().find_map(|(index, choice)| {
            let error = strategies.parse(choice.strategy.0.as_ref()).err()?;
            let message = format!("strategy `{}`: {error}", choice.strategy.0);
            Some(Fault::new(format!("strategy[{index}].strategy"), message))
        })
    }
}

/// Returns the component of a full strategy name that identifies the strategy.
fn strategy_component(name: &Name) -> Option<&[u8]> {
    name.as_ref().get(3).map(|component| component.value)
}
