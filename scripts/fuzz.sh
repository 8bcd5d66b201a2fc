#!/usr/bin/env bash
# Runs every fuzz target for some seconds: scripts/fuzz.sh SECONDS [TARGET …]
# Failing inputs are stored in fuzz/artifacts. New inputs that reach new code are added to fuzz/corpus, up to a total of MAX_FILES for
# a target.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"

MAX_FILES=60
seconds=${1:?usage: scripts/fuzz.sh SECONDS [TARGET ...]}
shift
command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cd fuzz && cargo fuzz list)

# All targets are built once and then run directly, so that a changed source does not cause another build. No sanitizer, because it
# needs an unstable compiler and nearly all of the code contains no unsafe.
cargo fuzz build --sanitizer none
host=$(rustc -vV | sed -n 's/^host: //p')
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
broken=()
for target in "${targets[@]}"; do
    echo "== $target, $seconds s"
    program=fuzz/target/$host/release/$target
    corpus=fuzz/corpus/$target
    mkdir -p "$corpus" "fuzz/artifacts/$target" "$found/$target"/{new,kept}
    # libFuzzer writes new inputs to the first folder.
    "$program" -artifact_prefix="fuzz/artifacts/$target/" -max_total_time="$seconds" -max_len=20000 -timeout=10 \
        -print_final_stats=1 "$found/$target/new" "$corpus" || broken+=("$target")
    # The merge copies inputs with new coverage from the second folder to the first one, a copy of the corpus. Without counters, only
    # reached code counts as coverage, not how often it runs.
    cp "$corpus"/* "$found/$target/kept" 2>/dev/null || true
    "$program" -set_cover_merge=1 -use_counters=0 "$found/$target/kept" "$found/$target/new" 2>/dev/null || true
    mapfile -t added < <(cd "$found/$target/kept" && ls -Sr | while read -r file; do
        [ -e "$OLDPWD/$corpus/$file" ] || echo "$file"
    done)
    # If there are too many new inputs, add an even selection by length.
    room=$((MAX_FILES - $(find "$corpus" -type f | wc -l)))
    [ "$room" -gt 0 ] || room=0
    for index in "${!added[@]}"; do
        if [ ${#added[@]} -le "$room" ] || [ $(((index + 1) * room / ${#added[@]})) -gt $((index * room / ${#added[@]})) ]; then
            cp "$found/$target/kept/${added[index]}" "$corpus"
        fi
    done
done
[ ${#broken[@]} -eq 0 ] || { echo "broken: ${broken[*]}; the inputs are in fuzz/artifacts" >&2; exit 1; }
