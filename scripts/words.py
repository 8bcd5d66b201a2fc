#!/usr/bin/env python3
"""Counts the comment lines of each crate that have words of roundabout sentences (docs/words.md). `make check` prints the table.

The count is only a hint: a sentence without these words may still be hard to read. Options: -v prints the lines.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("core", "io", "router", "p4", "lab")
PATTERN = re.compile(
    r"\b(whoever|whatever|nobody|somebody|so many|by and by|those (of|that|who)|who (has|have|is|asks|comes)|gives? way|gave up"
    r"|this computer|other computers|whose)\b",
    re.IGNORECASE,
)


def matching_lines(crate):
    """Yields file, line number and text of the matching comment lines of a crate."""
    for file in sorted(crate.rglob("*.rs")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            _, is_comment, comment = line.partition("//")
            if is_comment and PATTERN.search(comment):
                yield f"{file.relative_to(ROOT)}:{number}: {line.strip()}"


def main():
    total = 0
    for crate in sorted(path.parent for folder in FOLDERS for path in (ROOT / folder).glob("*/Cargo.toml")):
        lines = list(matching_lines(crate))
        total += len(lines)
        if lines:
            print(f"{len(lines):5} {crate.relative_to(ROOT)}")
        if "-v" in sys.argv[1:]:
            print("\n".join(lines))
    print(f"{total:5} comment lines with words of roundabout sentences (docs/words.md)")


if __name__ == "__main__":
    main()
