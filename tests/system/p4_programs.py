"""Compiled P4 programs for the system tests. A test process compiles each program once, because that takes seconds."""

import functools
import tempfile
from pathlib import Path

from conftest import PATIENCE, run_namehop


@functools.cache
def compiled(text):
    """Returns the contents of the compiled program and of its p4info."""
    with tempfile.TemporaryDirectory() as folder:
        source, program, p4info = (Path(folder) / name for name in ("program.p4", "program.so", "program.p4info.txt"))
        source.write_text(text)
        run_namehop("p4", "compile", source, "-o", program, "--p4info", p4info, timeout=PATIENCE)
        return program.read_bytes(), p4info.read_bytes()


def write_program(text, program, p4info=None):
    """Writes the compiled program to a file, and its p4info to another."""
    contents = compiled(text)
    program.write_bytes(contents[0])
    if p4info:
        p4info.write_bytes(contents[1])
