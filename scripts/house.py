#!/usr/bin/env python3
"""Checks the dependencies of folders, crates and modules against docs/architecture.md. `make check` runs it.

* A folder uses only the folders that `FOLDERS` lists for it.
* Inside a folder, a crate uses only crates above it in the table "Folders and crates". This includes its tests.
* The modules of a crate have no circular dependencies.
* No line of Rust is longer than `LONGEST` characters: rustfmt breaks neither comments nor strings nor macros.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The other folders that each folder may use.
FOLDERS = {"core": [], "io": ["core"], "router": ["core", "io"], "p4": ["core", "io"], "lab": ["core", "io", "router", "p4"]}


# As rustfmt breaks lines.
LONGEST = tomllib.loads((ROOT / "rustfmt.toml").read_text())["max_width"]


def long_lines():
    """Returns the place of each line that is too long."""
    files = sorted(file for folder in [*FOLDERS, "fuzz", "tests"] for file in (ROOT / folder).rglob("*.rs") if "target" not in file.parts)
    for file in files:
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if len(line) > LONGEST:
                yield f"{file.relative_to(ROOT)}:{number}: the line has {len(line)} characters; at most {LONGEST} are allowed"


def documented_crates():
    """Returns the paths of the crates, in the order of the table in docs/architecture.md."""
    section = (ROOT / "docs/architecture.md").read_text().split("\n## Folders and crates")[1].split("\n## ")[0]
    crates, folder = [], None
    for line in section.splitlines():
        if cells := re.match(r"\| `(\w+)/` \|", line):
            folder = cells[1]
        elif cells := re.match(r"\| +\| `(\w+)` \|", line):
            crates.append(f"{folder}/{cells[1]}")
    return crates


def manifests():
    """Returns the manifest of each crate, by its path."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).iterdir()) if (path / "Cargo.toml").is_file()]
    return {str(path.relative_to(ROOT)): tomllib.loads((path / "Cargo.toml").read_text()) for path in paths}


def wrong_uses(crates, order):
    """Returns pairs of crates in which the first one uses the second one against the order."""
    by_name = {manifest["package"]["name"]: path for path, manifest in crates.items()}
    for path, manifest in crates.items():
        tables = [manifest, *manifest.get("target", {}).values()]
        kinds = ("dependencies", "dev-dependencies", "build-dependencies")
        used = {by_name[name] for table in tables for kind in kinds for name in table.get(kind, {}) if name in by_name}
        for other in sorted(used - {path}):
            folder, of_other = path.split("/")[0], other.split("/")[0]
            is_allowed = order.index(other) < order.index(path) if folder == of_other else of_other in FOLDERS[folder]
            if not is_allowed:
                yield path, other


def use_paths(text):
    """Returns the paths of a use tree, as lists of names. `text` starts at the tree."""
    tree = re.match(r"(?:\w+::)*(?:\w+|\*|\{)", text)
    if tree is None:
        return []
    *names, last = tree[0].split("::")
    if last != "{":
        return [[*names, last]]
    paths, depth, start = [], 0, tree.end()
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth < 0 or depth == 0 and text[at] == ",":
            paths += [names + path for path in use_paths(text[start:at].lstrip())]
            start = at + 1
        if depth < 0:
            break
    return paths


def code_of(file):
    """Returns the text of a source file without comments and without its module of tests."""
    return re.sub(r"//[^\n]*", "", re.split(r"\n#\[cfg\(test\)\]\nmod tests \{", file.read_text())[0])


def re_exports(source, modules):
    """Returns the names that the root of a crate re-exports, with the module of each."""
    found = {}
    for root in (file for name in ("lib.rs", "main.rs") if (file := source / name).is_file()):
        for tree in re.findall(r"\buse ((?:crate::|self::)?\w+::[^;]*);", code_of(root)):
            for path in use_paths(tree.removeprefix("crate::").removeprefix("self::")):
                if path[0] in modules:
                    found[path[-1]] = path[0]
    return found


def uses_of_modules(source):
    """Returns the top-level modules that each top-level module of a crate uses, by paths from the root (`crate::`, or
    as many `super::` as lead there) and by names that the root re-exports. Ignores tests."""
    modules = {path.stem for path in source.iterdir()} - {"lib", "main", "tests", "testing"}
    of_root = re_exports(source, modules) | {module: module for module in modules}
    uses = {module: set() for module in modules}
    for file in source.rglob("*.rs"):
        inner = file.relative_to(source)
        module = inner.parts[0].removesuffix(".rs")
        if module not in modules or "test" in str(inner):
            continue
        depth = len(inner.parts) - (inner.name == "mod.rs")
        text = code_of(file)
        for root in re.finditer(r"(?<![\w:])(?:crate::|" + "super::" * depth + r")(?!super::)", text):
            names = {path[0] for path in use_paths(text[root.end() :])}
            uses[module] |= {of_root[name] for name in names if name in of_root} - {module}
    return uses


def circles(uses):
    """Returns sets of modules that use each other, directly or indirectly."""
    reach = {module: set(used) for module, used in uses.items()}
    for between in reach:
        for module in reach:
            if between in reach[module]:
                reach[module] |= reach[between]
    of_each = (frozenset(other for other in reach if other in reach[module] and module in reach[other]) for module in reach)
    return {circle for circle in of_each if circle}


def main():
    crates, order = manifests(), documented_crates()
    wrong = [f"docs/architecture.md and the folders differ: {path}" for path in sorted(set(order) ^ set(crates))]
    if not wrong:
        found = set(wrong_uses(crates, order))
        wrong += [f"{path} uses {other}, which is not above it in docs/architecture.md" for path, other in sorted(found)]
    found = {(path, " ".join(sorted(circle))) for path in crates for circle in circles(uses_of_modules(ROOT / path / "src"))}
    wrong += [f"{path}: a circle of modules: {names}" for path, names in sorted(found)]
    wrong += long_lines()
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
