"""Adds a throw-away cache policy and setting in a copy of the tree, builds and tests them, and counts the files that each touches.

`make joint-test` runs this. The numbers are those of "Usual changes" in docs/architecture.md.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# One folder for all runs, so that cargo compiles only what has changed.
PLACE = ROOT / "target/joints"
COPY = PLACE / "tree"

POLICY = '''
//! A policy of the joint test: evicts the oldest packet.

use namehop_table::TableError;

use crate::slots::{List, Slots};
use crate::{Ahead, Arrival, EvictionPolicy, Parameters};

/// Evicts the oldest packet. 16 bytes per slot.
#[derive(Debug)]
pub struct Oldest {
    slots: Slots,
    order: List,
}

impl EvictionPolicy for Oldest {
    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        Ok(Oldest { slots: Slots::new(parameters.slots)?, order: List::default() })
    }

    fn admitted(&mut self, id: u32, _: &Arrival) {
        self.slots.set_mark(id, 1);
        self.slots.push_back(&mut self.order, id);
    }

    fn hit(&mut self, _: u32) {}

    fn removed(&mut self, id: u32) {
        if self.slots.mark(id) != 0 {
            self.slots.set_mark(id, 0);
            self.slots.remove(&mut self.order, id);
        }
    }

    fn victim(&mut self) -> Option<u32> {
        self.order.first()
    }

    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        self.slots.upcoming(ahead, || self.order.first(), |id| self.slots.mark(id) == 1)
    }

    fn prefetch(&self, id: u32) {
        self.slots.prefetch(id);
    }

    fn len(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::models::{EvictionModel, HasEvictionModel};
    use crate::{Fifo, Parameters};

    impl HasEvictionModel for super::Oldest {
        fn model(parameters: &Parameters) -> Box<dyn EvictionModel> {
            <Fifo as HasEvictionModel>::model(parameters)
        }
    }
}
'''.lstrip()


@pytest.fixture
def tree():
    """A fresh copy of the files under version control, in a repository of its own that shows what changes."""
    PLACE.mkdir(parents=True, exist_ok=True)
    listed = run(ROOT, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    wanted = {file for file in listed if file and (ROOT / file).is_file()}
    shutil.rmtree(COPY / ".git", ignore_errors=True)
    # Files before their folders, which are removed if they are empty.
    for path in sorted(COPY.rglob("*"), reverse=True):
        if path.is_file() and str(path.relative_to(COPY)) not in wanted:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    for file in wanted:
        source, target = ROOT / file, COPY / file
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    run(COPY, "git", "init", "-q")
    run(COPY, "git", "add", "--all")
    run(COPY, "git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "Copy")
    return COPY


def run(folder, *command, **environment):
    environment = {**os.environ, "CARGO_TARGET_DIR": str(PLACE / "target"), **environment}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout[-4000:]}\n{result.stderr[-4000:]}"
    return result.stdout


def cargo_test(tree, package, *arguments, **environment):
    run(tree, "cargo", "test", "--locked", "--package", package, *arguments, **environment)


def replace(file, old, new):
    text = file.read_text()
    assert text.count(old) == 1, f"{file} must contain once: {old}"
    file.write_text(text.replace(old, new))


def touched(tree):
    return set(run(tree, "git", "ls-files", "--modified", "--others", "--exclude-standard").split())


def generated(tree):
    """Generates the files that follow from the declarations. Returns those that have changed by it."""
    before = touched(tree)
    cargo_test(tree, "namehop-config", "--lib", "the_files_are_those_of_the_declarations", NAMEHOP_WRITE_SETTINGS="1")
    return touched(tree) - before


def promised(change):
    """Returns the number of files in the row of a change in the documentation."""
    rows = (ROOT / "docs/architecture.md").read_text().splitlines()
    [row] = [row for row in rows if row.startswith(f"| {change} |")]
    return int(row.split("|")[2])


def test_a_cache_policy(tree):
    store = tree / "core/store/src"
    (store / "oldest.rs").write_text(POLICY)
    replace(store / "lib.rs", "\nmod list;\n", "\nmod list;\nmod oldest;\n")
    replace(store / "lib.rs", "\npub use lfu::Lfu;\n", "\npub use lfu::Lfu;\npub use oldest::Oldest;\n")
    replace(store / "lib.rs", '\n    Lru "lru"', '\n    Oldest "oldest" Guarded Everything Oldest (0.0, 0.0, 1.5);\n    Lru "lru"')
    replace(tree / "docs/caching.md", "\n| `lru` | all Data", "\n| `oldest` | all Data | the oldest | 16 bytes |\n| `lru` | all Data")
    assert len(touched(tree)) == promised("a cache policy")
    # All tests of policies take it from the list, and it is a value of the setting.
    cargo_test(tree, "namehop-store")
    assert generated(tree) == {"router/config/src/default.toml", "docs/settings.md"}
    assert '"oldest"' in (tree / "router/config/src/default.toml").read_text()
    cargo_test(tree, "namehop-config")


def test_a_setting(tree):
    before = "        /// Whether the store admits Data.\n"
    setting = "        /// A number that nothing uses.\n        pub spare_number: u64 = 7, in 1..=9;\n"
    replace(tree / "router/config/src/sections.rs", before, setting + before)
    assert len(touched(tree)) == promised("a setting")
    assert generated(tree) == {"router/config/src/default.toml", "docs/settings.md"}
    assert "# A number that nothing uses. From 1 to 9.\nspare_number = 7\n" in (tree / "router/config/src/default.toml").read_text()
    cargo_test(tree, "namehop-config")


def test_a_port_driver():
    """The files of a driver, as the unit tests count them, and its row in the documentation."""
    from new_driver import DRIVER, LIST

    assert len({DRIVER, LIST, "docs/operation.md"}) == promised("a port driver")
