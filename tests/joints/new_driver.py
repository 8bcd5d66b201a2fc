#!/usr/bin/env python3
"""Adds a port driver and an encapsulation in UDP to a copy of the sources of io/port, and tests that they work: a new driver needs only
its folder and its lines in the list of drivers, a new encapsulation only its file and its lines in the list of encapsulations.
`make unit-test` runs it.

The driver is a loop: a port that receives what it sends. The encapsulation is like Geneve. The script compiles the copy with the
dependencies that cargo has built, so it takes a few seconds. It fails if another file has to know of them. Arguments: the packages to
build, by default --workspace.
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
TUNNEL_LIST = "encapsulation/tunnel/mod.rs"
TUNNEL = "encapsulation/tunnel/plain.rs"

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

TUNNEL_SOURCE = """
//! A header of eight bytes with the number of a network, and then the packet.

use namehop_face::address::MacAddress;
use namehop_face::counters::LinkDrop;
use namehop_face::uri::TunnelScheme;

use super::{Inside, TunnelHeader, TunnelKind, TunnelPeer, masks};

pub static KIND: TunnelKind = TunnelKind {
    scheme: TunnelScheme {
        names: ["plain4", "plain6"],
        network: "id",
        max_network: u32::MAX,
        has_inner_address: false,
        expected: "a network, as in plain4://192.0.2.7?id=42 or plain6://[2001:db8::7]?id=42",
    },
    port: 6081,
    header_bytes: 8,
    source_at: None,
    write,
    read,
    masks: masks(&[0xFF; 8]),
};

fn write(peer: &TunnelPeer, _: &MacAddress) -> TunnelHeader {
    let mut header = TunnelHeader::default();
    header[..4].copy_from_slice(&peer.network.to_be_bytes());
    header
}

fn read(datagram: &[u8], _: &MacAddress) -> Result<Inside, LinkDrop> {
    let header = datagram.first_chunk::<8>().ok_or(LinkDrop::MalformedFrame)?;
    let [a, b, c, d, ..] = *header;
    Ok(Inside { network: u32::from_be_bytes([a, b, c, d]), source: None })
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
    // A face over the encapsulation, on a port of another driver.
    let remote = parse_uri("plain4://192.0.2.7?id=42").expect("the URI of the encapsulation");
    let local = parse_uri("dev://eth0?ip=192.0.2.1").expect("URI");
    let peer = FacePeer::of(&remote, &local).expect("a peer");
    assert_eq!(peer.mtu_bytes(1500), 1500 - 20 - 8 - 8);
    let params = namehop_port::faces::face_params(peer, &local.port(), 1500);
    assert_eq!((params.remote_uri.to_string(), params.local_uri), (remote.to_string(), local.clone()));
    let message = parse_uri("plain4://192.0.2.7?id=42&inner=02:00:00:00:00:01").expect_err("no inner address").to_string();
    assert!(message.contains("expected a network, as in plain4://"), "{message}");
    let reserved = parse_uri("dev://eth0?ip=192.0.2.1&port=6081").expect("URI");
    assert_eq!(FacePeer::of(&"udp4://192.0.2.7:6363".parse().expect("URI"), &reserved), None);
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
    """Lets cargo build the packages. Returns the library of each package, by its id.

    Cargo builds a package a second time for build scripts and macros, without optimisation and often with fewer features. The crates here
    use the other one.
    """
    command = ["cargo", "test", "--locked", "--no-run", "--message-format=json", *packages]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    found = {}
    for message in map(json.loads, lines):
        if message["reason"] == "compiler-artifact" and not message["profile"]["test"]:
            libraries = [name for name in message["filenames"] if name.endswith((".rlib", ".so"))]
            if libraries and set(message["target"]["kind"]) & {"lib", "rlib"}:
                build = (len(message["features"]), message["profile"]["opt_level"], libraries[0])
                found[message["package_id"]] = max(found.get(message["package_id"], build), build)
    return {package: build[-1] for package, build in found.items()}


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


def add(source, list_file, list_name, entry, item, file, text):
    """Adds a module with this text, its `mod` line before the other ones, and its entry in the list."""
    lines = (source / list_file).read_text()
    lines, modules = re.subn(r"^(pub mod \w+;)$", rf"pub mod {entry};\n\1", lines, count=1, flags=re.MULTILINE)
    lines, lists = re.subn(rf"(static {list_name}: &\[&\w+\] =\s*&\[)", rf"\1&{entry}::{item}, ", lines)
    assert (modules, lists) == (1, 1), f"{list_file} has modules and the list {list_name}"
    (source / list_file).write_text(lines)
    (source / file).parent.mkdir(exist_ok=True)
    (source / file).write_text(text.lstrip())


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
        add(source, LIST, "DRIVERS", "loop_back", "DRIVER", DRIVER, DRIVER_SOURCE)
        add(source, TUNNEL_LIST, "TUNNELS", "plain", "KIND", TUNNEL, TUNNEL_SOURCE)
        files = touched(source)
        assert files == sorted([LIST, DRIVER, TUNNEL_LIST, TUNNEL]), files
        compile_and_run(Path(folder), dependencies(libraries))
    print(f"ok  a new driver and a new encapsulation touch {len(files)} files: {', '.join(files)}")


if __name__ == "__main__":
    main()
