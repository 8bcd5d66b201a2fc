#!/usr/bin/env bash
# Compiles the shared object that ports need, libnamehop_dpdk.so, against the DPDK installed on this host.
#
#   scripts/ports.sh FOLDER...    the folders of the programs, such as target/release
#
# Programs look for it in their own folder. Does nothing for folders where it is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."

name=libnamehop_dpdk.so
sources=io/port/shim
# The libraries of DPDK that the sources call.
libraries=(-lrte_ethdev -lrte_mbuf -lrte_mempool -lrte_ring -lrte_eal)

# True if the file $1 is newer than its sources, and the libraries that it was linked with are installed.
is_current() {
    local source
    for source in "$sources"/* scripts/ports.sh; do [ "$1" -nt "$source" ] || return 1; done
    ! ldd "$1" | grep -q 'not found'
}

stale=()
for folder in "$@"; do
    is_current "$folder/$name" || stale+=("$folder")
done
[ ${#stale[@]} -gt 0 ] || exit 0

pkg-config --print-errors --exists 'libdpdk >= 22.11' || {
    echo "ports: DPDK 22.11 or newer is needed: run 'scripts/setup.sh ports', or install libdpdk-dev and pkg-config" >&2
    exit 1
}
# DPDK's headers are system headers, so that the warnings apply only to the shim.
read -ra flags <<<"$(pkg-config --cflags libdpdk | sed 's/-I/-isystem /g') $(pkg-config --libs-only-L libdpdk)"
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
"${CC:-cc}" -std=gnu11 -O3 -Wall -Wextra -D_GNU_SOURCE -DALLOW_EXPERIMENTAL_API -shared -fPIC -fvisibility=hidden \
    "${flags[@]}" "$sources"/*.c -Wl,--no-undefined -Wl,-z,now "${libraries[@]}" -o "$built/$name"
for folder in "${stale[@]}"; do
    # A running program may have mapped the old file: replace it instead of writing into it.
    install -D -m 644 "$built/$name" "$folder/$name.new"
    mv "$folder/$name.new" "$folder/$name"
done
