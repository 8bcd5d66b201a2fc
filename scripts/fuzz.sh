#!/usr/bin/env bash
# Runs every fuzz target for some seconds each: scripts/fuzz.sh SECONDS [TARGET …]
# New inputs that reach new code stay in fuzz/corpus; an input that breaks something is in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"

seconds=${1:?usage: scripts/fuzz.sh SECONDS [TARGET ...]}
shift
command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cd fuzz && cargo fuzz list)
for target in "${targets[@]}"; do
    echo "== $target, $seconds s"
    # No sanitizer: that needs an unstable compiler, and nearly all of the code has no unsafe to check.
    cargo fuzz run --sanitizer none "$target" -- -max_total_time="$seconds" -max_len=20000 -timeout=10 -print_final_stats=1
    # Keep the corpus small: only inputs that add something.
    cargo fuzz cmin --sanitizer none "$target" >/dev/null
done
