#!/usr/bin/env bash
# Repeats the measurements of docs/results with the programs of `make build`: scripts/results.sh [RUNS [PIECE...]]
# The pieces are links, sweeps and reproduce. The default is all of them.
# The script needs one or two hours, root for network interfaces of its own, 12 GB of memory and two otherwise idle CPUs.
# It replaces the results piece by piece, so an interruption keeps the old results of unfinished pieces.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${1:-3}
pieces=("${@:2}")
[ ${#pieces[@]} -gt 0 ] || pieces=(links sweeps reproduce)
for piece in "${pieces[@]}"; do
    [[ $piece =~ ^(links|sweeps|reproduce)$ ]] || { echo "results: there is no piece '$piece': links, sweeps, reproduce" >&2; exit 1; }
done
program=$PWD/target/release/namehop
results=docs/results
[ -x "$program" ] || { echo "results: there is no $program: 'make build' makes it" >&2; exit 1; }
mkdir -p "$results"
measured=$(mktemp -d)
# Keep the measurements of a failed piece, which may have taken an hour.
trap 'status=$?; [ $status -eq 0 ] && rm -rf "$measured" || echo "results: what was measured of a piece that failed is in $measured" >&2' EXIT

changed=$(git status --porcelain --untracked-files=no -- . ":!$results")
of() { lscpu | sed -n "s/^ *$1: *//p"; }
virtual=$(of 'Hypervisor vendor')
version="commit $(git rev-parse --short=12 HEAD)${changed:+ and changes that are not committed}, $(date --utc +%Y-%m-%d)"
{
    echo "Processor  $(of 'Model name'), $(of 'CPU(s)') processors${virtual:+, a virtual machine ($virtual)}"
    echo "Caches     L2 $(of 'L2 cache'), L3 $(of 'L3 cache')"
    echo "Memory     $(free -g | awk '/^Mem:/ { print $2 }') GiB; $(cat /proc/sys/vm/nr_hugepages) huge pages reserved; transparent ones: $(cat /sys/kernel/mm/transparent_hugepage/enabled)"
    echo "System     Linux $(uname -r), $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), DPDK $(pkg-config --modversion libdpdk), $(rustc --version)"
} >"$measured/machine.txt"

# measure FILE COMMAND...: writes version, command line and output of the command to the file.
measure() {
    local file=$1
    shift
    echo "results: namehop $*" >&2
    printf '# %s\n$ namehop %s\n' "$version" "$*" >"$measured/$file"
    (cd "$measured" && "$program" "$@" >>"$file")
    mv "$measured/$file" "$results/$file"
    cp "$measured/machine.txt" "$results/machine.txt"
}

# charts FOLDER: replaces the charts with those of the last measurement.
charts() {
    rm -rf "${results:?}/$1"
    mv "$measured/$1" "$results/$1"
}

for piece in "${pieces[@]}"; do
    case $piece in
        links) measure links.txt bench links --link memif,dev,xdp --runs "$runs" ;;
        sweeps) measure sweeps.txt bench links --sweep all --runs "$runs" --svg sweeps ;;
        reproduce) measure reproduce.txt reproduce all --runs "$runs" --svg reproduce ;;
    esac
    [ "$piece" = links ] || charts "$piece"
done
