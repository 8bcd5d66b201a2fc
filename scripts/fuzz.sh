#!/usr/bin/env bash
# Runs every fuzz target for some seconds each: scripts/fuzz.sh SECONDS [TARGET …]
# An input that breaks something is in fuzz/artifacts. Of the new inputs those that reach code that nothing in fuzz/corpus
# reaches are added to it, up to a total of MAX_FILES for a target.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"

MAX_FILES=60
seconds=${1:?usage: scripts/fuzz.sh SECONDS [TARGET ...]}
shift
command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cd fuzz && cargo fuzz list)

# Built once, for all targets; what was built is run directly, so that no run builds again because a source was touched.
# No sanitizer: that needs an unstable compiler, and nearly all of the code has no unsafe to check.
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
    # New inputs go to the first folder.
    "$program" -artifact_prefix="fuzz/artifacts/$target/" -max_total_time="$seconds" -max_len=20000 -timeout=10 \
        -print_final_stats=1 "$found/$target/new" "$corpus" || broken+=("$target")
    # What the second folder adds to the first one is copied to it, so this leaves everything in the corpus as it is.
    # Without counters only code that is reached counts, not how often.
    cp "$corpus"/* "$found/$target/kept" 2>/dev/null || true
    "$program" -set_cover_merge=1 -use_counters=0 "$found/$target/kept" "$found/$target/new" 2>/dev/null || true
    mapfile -t added < <(cd "$found/$target/kept" && ls -Sr | while read -r file; do
        [ -e "$OLDPWD/$corpus/$file" ] || echo "$file"
    done)
    # When there are too many, some of every length.
    room=$((MAX_FILES - $(find "$corpus" -type f | wc -l)))
    [ "$room" -gt 0 ] || room=0
    for index in "${!added[@]}"; do
        if [ ${#added[@]} -le "$room" ] || [ $(((index + 1) * room / ${#added[@]})) -gt $((index * room / ${#added[@]})) ]; then
            cp "$found/$target/kept/${added[index]}" "$corpus"
        fi
    done
done
[ ${#broken[@]} -eq 0 ] || { echo "broken: ${broken[*]}; the inputs are in fuzz/artifacts" >&2; exit 1; }
