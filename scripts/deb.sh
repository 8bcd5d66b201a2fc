#!/usr/bin/env bash
# Builds target/deb/namehop_VERSION_ARCHITECTURE.deb from a built program, with dpkg's own tools.
#
#   scripts/deb.sh [PROGRAM]    default: target/release/namehop
set -euo pipefail
cd "$(dirname "$0")/.."

program=$(realpath "${1:-target/release/namehop}")
out=$PWD/target/deb
stage=$out/stage
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)-1
architecture=$(dpkg --print-architecture)
# A fixed date makes the build reproducible.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}

rm -rf "$out"
mkdir -p "$stage/DEBIAN"
umask 022
make --no-print-directory install PROGRAM="$program" PREFIX=/usr DESTDIR="$stage" >/dev/null

strip --strip-unneeded --remove-section=.comment --remove-section=.note "$stage"/usr/bin/*
gzip -9n "$stage"/usr/share/man/man1/*.1

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
depends=$(cd "$out" && dpkg-shlibdeps -O -e"$stage/usr/bin/namehop" -e"$stage/usr/bin/namehop-p4" -e"$stage/usr/bin/namehop-lab" 2>/dev/null | sed 's/^shlibs:Depends=//')
[ -n "$depends" ] || { echo "deb: dpkg-shlibdeps does not know the libraries of $program" >&2; exit 1; }
# DPDK loads this plugin by name when the first port opens. No program links it, so dpkg-shlibdeps cannot find it, but all packet
# memory needs it.
depends=$(sed -E 's/librte-mempool([0-9]+)( \([^)]*\))?/&, librte-mempool-ring\1\2/' <<<"$depends")
size=$(du -sk --apparent-size "$stage" | cut -f1)
sed -e "s|@VERSION@|$version|" -e "s|@ARCHITECTURE@|$architecture|" -e "s|@DEPENDS@|$depends|" -e "s|@SIZE@|$size|" \
    packaging/debian/control >"$stage/DEBIAN/control"
install -m 755 packaging/debian/postinst packaging/debian/prerm packaging/debian/postrm "$stage/DEBIAN/"
(cd "$stage" && find usr lib -type f -print0 | sort -z | xargs -0 md5sum) >"$stage/DEBIAN/md5sums"

package=$out/namehop_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$stage" "$package" >/dev/null
echo "$package"
