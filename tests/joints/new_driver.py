#!/usr/bin/env python3
"""Adds a port driver to a copy of the sources of io/port, as its folder and its lines in the list, and tests that it works: that is
all a new driver needs. `make unit-test` runs it.

The driver is a loop: a port that receives what it sends. The script compiles the copy with the dependencies that cargo has built, so it
takes a few seconds. It fails if another file has to know of the driver. Arguments: the packages to build, by default --workspace.
"""

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CRATE = ROOT / "io/port"
LIST = "drivers/mod.rs"
DRIVER = "drivers/loop_back/mod.rs"

DRIVER_SOURCE = """
//! Ports that receive what they send.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use namehop_face::uri::{PortScheme, PortUri};
use namehop_packet::{PacketBuffer, PortQueue};

use super::{Access, Device, Driver, DriverTraits, NO_TRAITS, OpenError, OpenPort, Opener, Spread, Wishes, boxed, local_address};
use crate::losses::Losses;

const EXPECTED: &str = "a name, as in loopback://a?vlan=7";

pub static DRIVER: Driver = Driver {
    scheme: PortScheme {
        name: "loopback",
        parse: |parser, text| {
            let (name, options) = parser.device_and_options(text, EXPECTED)?;
            Ok((parser.interface(name, EXPECTED)?, options))
        },
        separator: Some('?'),
        can_be_bare: true,
    },
    form: "loopback://NAME",
    meaning: "frames that come back",
    traits: DriverTraits { has_peer: true, ..NO_TRAITS },
    access: |port| Access::Device(port.device().to_owned()),
    open,
};

fn open(_: &mut Opener, port: &PortUri, wishes: &Wishes) -> Result<OpenPort, OpenError> {
    Ok(OpenPort {
        device: Box::new(Loop),
        queues: boxed([Frames::default()]),
        spread: Spread::OneQueue,
        address: local_address(port.device().len() as u64),
        mtu_bytes: wishes.mtu_bytes.unwrap_or(1500),
    })
}

struct Loop;

impl Device for Loop {
    fn is_up(&self) -> bool {
        true
    }

    fn losses(&self) -> Losses {
        Losses::default()
    }
}

#[derive(Default)]
struct Frames(VecDeque<PacketBuffer>);

impl PortQueue for Frames {
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>) {
        frames.extend(self.0.drain(..));
    }

    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>) {
        self.0.extend(frames.drain(..));
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
"""

PROGRAM = """
use namehop_packet::BufferPool;
use namehop_port::drivers::{Driver, Opener, RingSizes, Wishes, forms, parse_uri, usage};
use namehop_port::encapsulation::{FacePeer, Peer};

fn main() {
    // The URI, and the messages that come from the list.
    let uri = parse_uri("LOOPBACK://a?vlan=7").expect("the driver's URI");
    assert_eq!((uri.to_string(), uri.port().to_string()), ("loopback://a?vlan=7".into(), "loopback://a".into()));
    assert_eq!(Driver::of(&uri).map(|driver| driver.form), Some("loopback://NAME"));
    assert!(usage().contains("loopback://NAME for frames that come back"), "{}", usage());
    assert!(forms(|driver| driver.scheme.can_be_bare).contains("loopback://NAME"));
    let message = parse_uri("loopback://a/b").expect_err("not a name").to_string();
    assert!(message.contains("expected a name, as in loopback://a?vlan=7"), "{message}");
    let message = parse_uri("loop://a").expect_err("another scheme").to_string();
    assert!(message.contains(", loopback"), "{message}");
    // Faces on it.
    let ether = "ether://[02:00:00:00:00:01]".parse().expect("URI");
    assert!(matches!(FacePeer::of(&ether, &uri), Some(FacePeer::Link(Peer::Vlan(..)))));
    assert_eq!(FacePeer::of(&uri.port(), &uri.port()), Some(FacePeer::Link(Peer::Bare)));
    // The port.
    let pool = BufferPool::new(8, 8);
    let mut opener = Opener::new(&pool, RingSizes::default());
    let wishes = Wishes { header_bytes: 18, mtu_bytes: None, queues: 1 };
    let mut port = opener.open(&uri.port(), &wishes).unwrap_or_else(|error| panic!("{error}"));
    let (mut sent, mut received) = (vec![pool.copy_of(b"frame").expect("a buffer")], Vec::new());
    port.queues[0].transmit(&mut sent);
    port.queues[0].receive(&mut received);
    assert!(sent.is_empty() && received.len() == 1 && received[0].bytes() == b"frame" && port.device.is_up());
}
"""


def artifacts(packages):
    """Lets cargo build the packages. Returns the library of each package, by its id."""
    command = ["cargo", "test", "--locked", "--no-run", "--message-format=json", *packages]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    found = {}
    for message in map(json.loads, lines):
        if message["reason"] == "compiler-artifact" and not message["profile"]["test"]:
            libraries = [name for name in message["filenames"] if name.endswith((".rlib", ".so"))]
            if libraries and set(message["target"]["kind"]) & {"lib", "rlib"}:
                found[message["package_id"]] = libraries[0]
    return found


def dependencies(libraries):
    """Returns the libraries that the crate uses, by the names of their crates."""
    version = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout
    host = re.search(r"^host: (.+)$", version, re.MULTILINE)[1]
    command = ["cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={host}"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)
    name = tomllib.loads((CRATE / "Cargo.toml").read_text())["package"]["name"]
    crate = next(package["id"] for package in metadata["packages"] if package["name"] == name)
    node = next(node for node in metadata["resolve"]["nodes"] if node["id"] == crate)
    return {dependency["name"]: libraries[dependency["pkg"]] for dependency in node["deps"] if dependency["pkg"] in libraries}


def add_driver(source):
    """Adds the driver to the sources: its folder, and its lines in the list."""
    text = (source / LIST).read_text()
    text, modules = re.subn(r"^(pub mod \w+;)$", r"pub mod loop_back;\n\1", text, count=1, flags=re.MULTILINE)
    text, drivers = re.subn(r"(static DRIVERS: &\[&Driver\] =\s*&\[)", r"\1&loop_back::DRIVER, ", text, count=1)
    assert (modules, drivers) == (1, 1), f"{LIST} has a list of drivers"
    (source / LIST).write_text(text)
    (source / DRIVER).parent.mkdir()
    (source / DRIVER).write_text(DRIVER_SOURCE.lstrip())


def touched(source):
    """Returns the files that differ from those of the crate."""
    files = (file.relative_to(source) for file in source.rglob("*") if file.is_file())
    original = CRATE / "src"
    return sorted(
        str(file) for file in files if not (original / file).is_file() or not filecmp.cmp(source / file, original / file, shallow=False)
    )


def compile_and_run(folder, externs):
    """Compiles the crate with the driver and the program that uses it, and runs that."""
    paths = {f"dependency={Path(library).parent}" for library in externs.values()}
    common = ["rustc", "--edition", "2024", *(word for path in paths for word in ("-L", path))]
    used = [word for name, library in externs.items() for word in ("--extern", f"{name}={library}")]
    library = folder / "libnamehop_port.rlib"
    lints = ["-D", "warnings", "-A", "missing_docs"]
    environment = os.environ | {"CARGO_MANIFEST_DIR": str(CRATE), "CARGO_PKG_VERSION": "0.0.0"}
    crate = ["--crate-name", "namehop_port", "--crate-type", "rlib", str(folder / "src/lib.rs"), "-o", str(library)]
    subprocess.run([*common, *used, *lints, *crate], check=True, env=environment)
    (folder / "main.rs").write_text(PROGRAM)
    program = ["--extern", f"namehop_port={library}", str(folder / "main.rs"), "-o", str(folder / "main")]
    subprocess.run([*common, *used, *program], check=True)
    subprocess.run([folder / "main"], check=True)


def main():
    libraries = artifacts(sys.argv[1:] or ["--workspace"])
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(CRATE / "src", source)
        add_driver(source)
        files = touched(source)
        assert files == sorted([LIST, DRIVER]), f"a driver is its folder and its lines in {LIST}, not {files}"
        compile_and_run(Path(folder), dependencies(libraries))
    print(f"ok  a new driver touches {len(files)} files: {', '.join(files)}")


if __name__ == "__main__":
    main()
