#!/usr/bin/env bash
# Builds target/deb/namehop_VERSION_ARCHITECTURE.deb from a built program, and namehop-ports_VERSION_ARCHITECTURE.deb from what
# `make ports` has put beside it or in target/release, with dpkg's own tools.
#
#   scripts/deb.sh [PROGRAM]    default: target/release/namehop
set -euo pipefail
cd "$(dirname "$0")/.."

program=$(realpath "${1:-target/release/namehop}")
out=$PWD/target/deb
stage=$out/stage/namehop
ports=$out/stage/namehop-ports
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)-1
architecture=$(dpkg --print-architecture)
# A fixed date makes the build reproducible.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}

rm -rf "$out"
mkdir -p "$stage/DEBIAN" "$ports/DEBIAN"
umask 022
make --no-print-directory install PROGRAM="$program" PREFIX=/usr DESTDIR="$stage" >/dev/null

strip --strip-unneeded --remove-section=.comment --remove-section=.note "$stage"/usr/bin/* "$stage"/usr/lib/namehop/*
gzip -9n "$stage"/usr/share/man/man1/*.1

# Only the package namehop-ports needs DPDK.
mkdir -p "$ports/usr/lib" "$ports/usr/share/doc"
mv "$stage/usr/lib/namehop" "$ports/usr/lib/namehop"
ln -s namehop "$ports/usr/share/doc/namehop-ports"

# The package's configuration is a separate conffile, which an upgrade does not overwrite.
install -D -m 644 "$stage/usr/share/doc/namehop/namehop.toml" "$stage/etc/namehop/namehop.toml"
sed -i 's|^ExecStart=.*|& --config /etc/namehop/namehop.toml|' "$stage/usr/lib/systemd/system/namehop.service"
# Debian 12 has its units in this folder.
mkdir -p "$stage/lib/systemd" && mv "$stage/usr/lib/systemd/system" "$stage/lib/systemd/system" && rmdir "$stage/usr/lib/systemd" "$stage/usr/lib"
(cd "$stage" && find etc -type f | sed 's|^|/|') >"$stage/DEBIAN/conffiles"

documents=$stage/usr/share/doc/namehop
install -m 644 packaging/debian/copyright "$documents/copyright"
install -m 644 README.md docs/*.md docs/openapi.json "$documents/"
gzip -9nc CHANGELOG.md >"$documents/changelog.gz"
gzip -9nc >"$documents/changelog.Debian.gz" <<END
namehop ($version) unstable; urgency=medium

  * Built from the source; changelog.gz says what has changed there.

 -- $(sed -n 's/^Maintainer: //p' packaging/debian/control)  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
END

# dpkg-shlibdeps needs the control file of a source package, which may be empty.
mkdir -p "$out/debian" && : >"$out/debian/control"

# depends FILE...: prints the packages of the libraries that these files need.
depends() {
    local found
    found=$(cd "$out" && dpkg-shlibdeps -O "${@/#/-e}" 2>/dev/null | sed 's/^shlibs:Depends=//')
    [ -n "$found" ] || { echo "deb: dpkg-shlibdeps does not know the libraries of $*" >&2; exit 1; }
    echo "$found"
}

# package STAGE CONTROL DEPENDS: builds the package of this folder.
package() {
    local folder=$1 size file
    size=$(du -sk --apparent-size "$folder" | cut -f1)
    sed -e "s|@VERSION@|$version|" -e "s|@ARCHITECTURE@|$architecture|" -e "s|@DEPENDS@|$3|" -e "s|@SIZE@|$size|" "$2" >"$folder/DEBIAN/control"
    (cd "$folder" && find . -type f -not -path './DEBIAN/*' -not -path './etc/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$folder/DEBIAN/md5sums"
    file=$out/$(basename "$folder")_${version}_$architecture.deb
    dpkg-deb --root-owner-group --build "$folder" "$file" >/dev/null
    echo "$file"
}

install -m 755 packaging/debian/postinst packaging/debian/prerm packaging/debian/postrm "$stage/DEBIAN/"
needed=$(depends "$stage"/usr/bin/*)
package "$stage" packaging/debian/control "$needed"

install -m 755 packaging/debian/namehop-ports.postinst "$ports/DEBIAN/postinst"
needed=$(depends "$ports"/usr/lib/namehop/*)
# DPDK loads this plugin by name when the first port opens. Nothing links it, so dpkg-shlibdeps cannot find it, but all packet memory
# needs it.
needed=$(sed -E 's/librte-mempool([0-9]+)( \([^)]*\))?/&, librte-mempool-ring\1\2/' <<<"$needed")
package "$ports" packaging/debian/namehop-ports.control "$needed"
