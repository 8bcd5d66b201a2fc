#!/usr/bin/env bash
# Runs the P4 samples of other projects through namehop p4: scripts/p4-samples.sh FOLDER [PART …]
# FOLDER is a copy of https://github.com/p4lang/p4c, with the parts check, compile, refuse and test, or of
# https://github.com/p4lang/tutorials, with the part solutions. The default is all parts of the folder. Nothing is written to it.
# The script prints a line for each unexpected result, with exit code and first message, and a line of counts for each part.
# The exit code is 1 if the compiler crashed or timed out. The variable P4 names a program other than that of 'make build'.
set -euo pipefail

folder=${1:?usage: scripts/p4-samples.sh FOLDER [check|compile|refuse|test|solutions ...]}
shift
here=$(dirname "$0")/..
samples=$folder/testdata/p4_16_samples
if [ -d "$samples" ]; then
    parts=(check compile refuse test)
elif [ -d "$folder/exercises" ]; then
    parts=(solutions)
else
    echo "'$folder' is neither a copy of p4c nor one of P4's tutorials: it has no testdata/p4_16_samples and no exercises" >&2
    exit 2
fi
[ $# -eq 0 ] || parts=("$@")
P4=${P4:-$here/target/release/namehop-p4}
[ -x "$P4" ] || { echo "there is no program $P4: run 'make build', or name another one in the variable P4" >&2; exit 2; }
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
export P4 results folder

# Reads paths of programs, one a line, and prints those with the architecture v1model.
of_v1model() { xargs -d '\n' grep -lE '^[[:space:]]*#[[:space:]]*include.*v1model' || true; }

# Prints the programs of a part, one a line, each followed by a tab and its test if it has one.
list() {
    case $1 in
    check) find "$samples" -name '*.p4' ;;
    compile) find "$samples" -maxdepth 1 -name '*-bmv2.p4' | of_v1model ;;
    refuse) find "$folder/testdata/p4_16_errors" -name '*.p4' | of_v1model ;;
    test)
        find "$samples" -name '*.p4' | of_v1model | while read -r program; do
            [ ! -e "${program%.p4}.stf" ] || printf '%s\t%s\n' "$program" "${program%.p4}.stf"
        done
        ;;
    solutions)
        for test in "$here"/p4/runtime/programs/tutorials/*.stf; do
            name=$(basename "$test" .stf)
            printf '%s\t%s\n' "$folder/exercises/$name/solution/$name.p4" "$test"
        done
        ;;
    *) echo "there is no part '$1'" >&2; exit 2 ;;
    esac
}

# Runs one program. Prints the exit code, the path, and the first error message.
run_one() {
    local part=$1 program=${2%%$'\t'*} test=${2##*$'\t'} code=0 said=$results/$BASHPID
    case $part in
    # Samples for other architectures include files of p4c.
    check) timeout 120 "$P4" check --include "$folder/p4include" "$program" >"$said" 2>&1 || code=$? ;;
    compile | refuse) timeout 120 "$P4" compile "$program" --emit c -o "$said.c" >"$said" 2>&1 || code=$? ;;
    test | solutions) timeout 120 "$P4" test "$program" "$test" >"$said" 2>&1 || code=$? ;;
    esac
    printf '%s\t%s\t%s\n' "$code" "$program" "$(grep -m 1 -iE '^error|panicked|differ' "$said" || head -n 1 "$said")"
    rm -f "$said" "$said.c"
}
export -f run_one

broken=0
for part in "${parts[@]}"; do
    list "$part" | LC_ALL=C sort >"$results/list"
    xargs -d '\n' -P "$(nproc)" -I '{}' bash -c 'run_one "$@"' _ "$part" '{}' <"$results/list" | LC_ALL=C sort -k 2 >"$results/said"
    case $part in
    check) fine='^[01]' ;;
    refuse) fine='^1' ;;
    *) fine='^0' ;;
    esac
    grep -vE "$fine"$'\t' "$results/said" || true
    crashed=$(grep -cvE $'^[01]\t' "$results/said" || true)
    echo "$part: $(wc -l <"$results/said") programs, $(grep -c $'^0\t' "$results/said" || true) with exit code 0," \
        "$(grep -c $'^1\t' "$results/said" || true) with 1, $crashed crashed or took more than 120 s"
    [ "$crashed" = 0 ] || broken=1
done
exit $broken
