//! Loaded strategies that ended the router by a signal: the next start does not load them automatically.
//!
//! A file beside the state file holds their labels ([`namehop_engine::strategy::program::label`]), one per line. The
//! handler of fatal signals appends to it. Loading or unloading the strategy by command removes the label.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use namehop_engine::strategy::program::{blame, label};
use tracing::warn;

use crate::state::{open_own, sibling};

/// Extension of the file, appended to the path of the state file.
const ENDING: &str = "faulty-strategies";
/// Longest part of the file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 16;

/// The strategies that ended the router.
#[derive(Debug, Default)]
pub struct FaultyStrategies {
    /// `None` if nothing is recorded.
    file: Option<File>,
    labels: RefCell<BTreeSet<String>>,
}

impl FaultyStrategies {
    /// Reads the file beside the state file, and makes the signal handler append to it from now on. If the file cannot
    /// be used, logs a warning and records nothing.
    pub fn beside(state: &Path) -> Self {
        let path = sibling(state, ENDING);
        let opened = open_own(&path, true).and_then(|mut file| {
            let mut text = String::new();
            (&mut file).take(MAX_BYTES).read_to_string(&mut text)?;
            blame::record_in(file.try_clone()?.into())?;
            let labels = RefCell::new(text.lines().map(str::to_owned).collect());
            Ok(FaultyStrategies { file: Some(file), labels })
        });
        opened.unwrap_or_else(|error| {
            warn!(
                file = %path.display(),
                %error,
                "cannot record faults: a strategy that crashes the router will be loaded again"
            );
            FaultyStrategies::default()
        })
    }

    /// Returns whether this program ended the router under this name.
    pub fn contains(&self, name: &str, object: &[u8]) -> bool {
        self.labels.borrow().contains(&label(name, object))
    }

    /// Removes all programs of this name, because an operator has loaded or unloaded a strategy of this name.
    pub fn forget(&self, name: &str) {
        let mut labels = self.labels.borrow_mut();
        let before = labels.len();
        labels.retain(|label| label.split(' ').next() != Some(name));
        if labels.len() == before {
            return;
        }
        let Some(mut file) = self.file.as_ref() else { return };
        let text: String = labels.iter().flat_map(|label| [label.as_str(), "\n"]).collect();
        if let Err(error) = file.set_len(0).and_then(|()| file.write_all(text.as_bytes())) {
            warn!(name, %error, "the next start will not load this strategy: cannot remove the record of its fault");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_recorded_strategy_is_known_until_an_operator_decides() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state.json");
        let file = folder.path().join("state.json.faulty-strategies");
        std::fs::write(&file, format!("{}\n{}\n", label("mine", b"program"), label("other", b"program")))
            .expect("written");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("file mode set");
        let faulty = FaultyStrategies::beside(&state);
        assert!(faulty.contains("mine", b"program") && faulty.contains("other", b"program"));
        assert!(!faulty.contains("mine", b"another program"), "a corrected program is not blamed");
        faulty.forget("mine");
        faulty.forget("never loaded");
        assert!(!faulty.contains("mine", b"program") && faulty.contains("other", b"program"));
        assert_eq!(std::fs::read_to_string(&file).expect("read"), format!("{}\n", label("other", b"program")));
    }

    #[test]
    fn the_file_of_another_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("target");
        std::fs::write(&target, label("mine", b"")).expect("written");
        std::os::unix::fs::symlink(&target, folder.path().join("state.json.faulty-strategies")).expect("a link");
        assert!(!FaultyStrategies::beside(&folder.path().join("state.json")).contains("mine", b""));
    }
}
