//! Compiles the C shim against the DPDK installed on this host and links DPDK's shared libraries.
//!
//! Flags come from pkg-config, so that headers, instruction set and libraries match.

use std::env;
use std::process::{Command, exit};

/// Libraries that the shim calls.
const LIBRARIES: [&str; 5] = ["rte_ethdev", "rte_mbuf", "rte_mempool", "rte_ring", "rte_eal"];

fn main() {
    println!("cargo::rerun-if-changed=shim/shim.c");
    println!("cargo::rerun-if-changed=shim/nic.c");
    println!("cargo::rerun-if-changed=shim/steering.c");
    println!("cargo::rerun-if-changed=shim/shim.h");
    println!("cargo::rerun-if-env-changed=PKG_CONFIG");
    println!("cargo::rerun-if-env-changed=PKG_CONFIG_PATH");
    let mut shim = cc::Build::new();
    shim.file("shim/shim.c")
        .file("shim/nic.c")
        .file("shim/steering.c")
        .define("_GNU_SOURCE", None)
        .define("ALLOW_EXPERIMENTAL_API", None)
        .std("gnu11")
        .warnings(true)
        .extra_warnings(true);
    for flag in pkg_config("--cflags") {
        // Include DPDK's headers as system headers, so that this crate's warning flags do not apply to them.
        match flag.strip_prefix("-I") {
            Some(folder) => shim.flag("-isystem").flag(folder),
            None => shim.flag(flag),
        };
    }
    shim.compile("namehop_dpdk_shim");
    for flag in pkg_config("--libs-only-L") {
        println!("cargo::rustc-link-search=native={}", flag.trim_start_matches("-L"));
    }
    for library in LIBRARIES {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
}

/// Returns pkg-config's answer for DPDK. Without DPDK, the build ends with a message that says how to install it.
fn pkg_config(question: &str) -> Vec<String> {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_owned());
    match Command::new(&program).args([question, "libdpdk >= 22.11"]).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
        }
        Ok(output) => give_up(&String::from_utf8_lossy(&output.stderr)),
        Err(error) => give_up(&format!("cannot run {program}: {error}")),
    }
}

fn give_up(reason: &str) -> ! {
    for line in reason.lines().filter(|line| !line.trim().is_empty()) {
        println!("cargo::error={line}");
    }
    println!(
        "cargo::error=DPDK 22.11 or newer is needed: run scripts/setup.sh, or install libdpdk-dev and pkg-config. To \
         build a router for sockets only, without DPDK: cargo build --package namehop --no-default-features"
    );
    exit(1)
}
