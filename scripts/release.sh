#!/usr/bin/env bash
# Builds the router for packages with profile-guided optimisation.
#
#   scripts/release.sh
#
# Three steps: an instrumented build, runs of it under typical loads, and a build with the recorded profile. This takes two release
# builds and a minute of runs, which need 2 GB of memory. The results are namehop and namehop-lab in target/guided/release.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
folder=$PWD/target/guided
profiles=$folder/profiles
merged=$folder/merged.profdata

say() { printf 'release: %s\n' "$*" >&2; }

# llvm-profdata must match the compiler's LLVM version. It comes from the toolchain or from the system.
profdata=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
if [ ! -x "$profdata" ] && command -v rustup >/dev/null 2>&1; then
    say "installing llvm-tools beside the toolchain"
    rustup component add llvm-tools >/dev/null 2>&1 || true
fi
[ -x "$profdata" ] || profdata=llvm-profdata-$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
command -v "$profdata" >/dev/null 2>&1 || {
    say "no llvm-profdata for this compiler: 'rustup component add llvm-tools', or use 'make build'"
    exit 1
}

# With an explicit --target, RUSTFLAGS do not apply to build scripts and macros, so they are not instrumented.
build() { RUSTFLAGS="${RUSTFLAGS:-} $1" cargo build --release --locked --package namehop --package namehop-lab --target "$host" --target-dir "$folder"; }

rm -rf "$profiles" "$merged"
say "building the program that counts"
build "-Cprofile-generate=$profiles"

# `bench engine` uses DPDK.
scripts/ports.sh "$folder/$host/release" "$folder/release"
counting=$folder/$host/release/namehop
run() { say "running: namehop $*"; "$counting" "$@" >/dev/null; }
# The engine with cache hits, with cache misses, and with the published load.
run bench engine --schedule burst --fib 1000000 --in-flight 100000 --cs 500000 --hit-ratio 0.3 --seconds 3 --no-floor
run bench engine --schedule burst --fib 1000000 --in-flight 100000 --cs 0 --data-without-token --seconds 3 --no-floor
run bench engine --schedule burst --fib 100000 --load published --seconds 3 --no-floor
# A router over sockets: one connection sends Interests, another one answers.
home=$(mktemp -d)
router=
stop() {
    if [ -n "$router" ]; then kill "$router" 2>/dev/null && wait "$router" || true; fi
    rm -rf "$home"
}
trap stop EXIT
cat >"$home/namehop.toml" <<TOML
[faces.unix]
path = "$home/nfd.sock"
[faces.tcp]
listen = []
[faces.udp]
listen = []
[faces.websocket]
listen = []
[metrics]
enabled = false
[state]
enabled = false
TOML
"$counting" run --config "$home/namehop.toml" 2>"$home/log" &
router=$!
for _ in $(seq 100); do
    [ -S "$home/nfd.sock" ] && break
    sleep 0.1
done
run bench sockets --transport "unix://$home/nfd.sock" --duration 3s
run bench sockets --transport "unix://$home/nfd.sock" --payload 1000 --names 1000 --freshness 10s --duration 3s
# The program writes its profile at a normal exit.
kill "$router"
wait "$router" || { say "the router failed:"; cat "$home/log" >&2; exit 1; }
router=

"$profdata" merge -o "$merged" "$profiles"/*.profraw
say "building the program that uses the counts"
build "-Cprofile-use=$merged"
mkdir -p "$folder/release"
cp "$counting" "$counting-lab" "$folder/release/"
say "done: $folder/release/namehop and $folder/release/namehop-lab"
