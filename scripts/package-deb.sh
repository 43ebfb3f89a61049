#!/usr/bin/env bash
# Makes Debian packages of a build: the library, what programs are built with, and the tool with its manual pages and
# completion. Each depends on the oldest C library that has the symbols it asks for.
#   scripts/package-deb.sh BUILD FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 out=$2
command -v dpkg-deb >/dev/null || { echo "package-deb: dpkg-deb is missing (Debian: dpkg)" >&2; exit 1; }
grep -q '^BERTH_SANITIZE:[A-Z]*=.' "$build/CMakeCache.txt" && { echo "package-deb: this build has sanitizers in it" >&2; exit 1; }
version=$(sed -n 's/#define BERTH_VERSION "\(.*\)"/\1/p' include/berth/berth.h)
api=${version%.*}
machine=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
cmake --install "$build" --prefix "$work/all/usr" >/dev/null
library=$(dirname "$(find "$work/all" -name libberth.a)")
place=${library#"$work/all/"}

needs_libc() { # FILE...: the newest of glibc's versions that they ask for
  local newest
  newest=$(for file; do objdump -T "$file" 2>/dev/null; done | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -n 1)
  echo "libc6 (>= ${newest:-2.5})"
}

package() { # NAME DEPENDS SECTION SUMMARY TEXT: of the tree in $work/NAME
  local tree=$work/$1
  mkdir -p "$tree/DEBIAN" "$tree/usr/share/doc/$1"
  cp LICENSE "$tree/usr/share/doc/$1/copyright"
  gzip -9n <CHANGELOG.md >"$tree/usr/share/doc/$1/changelog.gz"
  cat >"$tree/DEBIAN/control" <<CONTROL
Package: $1
Version: $version
Architecture: $machine
Maintainer: berth <berth@localhost>
Depends: $2
Section: $3
Priority: optional
Installed-Size: $(du -sk "$tree/usr" | cut -f 1)
Description: $4
 $5
CONTROL
  [ "$1" != "libberth$api" ] || echo "activate-noawait ldconfig" >"$tree/DEBIAN/triggers"
  find "$tree" -type d -exec chmod 755 {} +
  (cd "$tree" && find usr -type f -exec md5sum {} +) >"$tree/DEBIAN/md5sums"
  dpkg-deb --build --root-owner-group "$tree" "$out/$1_${version}_$machine.deb" >/dev/null
  echo "$out/$1_${version}_$machine.deb"
}

# The library
mkdir -p "$work/libberth$api/$place"
cp -a "$library"/libberth.so.* "$work/libberth$api/$place"
strip --strip-unneeded "$work/libberth$api/$place/libberth.so.$version"
[ ! -f "$library/libberth_shaderc.so" ] || cp -a "$library/libberth_shaderc.so" "$work/libberth$api/$place"
package "libberth$api" "$(needs_libc "$work/libberth$api/$place/libberth.so.$version")" libs \
  "plans one block of memory for a neural network, and runs it there" "The shared library."

# What programs are built with
mkdir -p "$work/libberth-dev/$place"
cp -a "$work/all/usr/include" "$work/libberth-dev/usr/"
cp -a "$library"/libberth.so "$library"/libberth.a "$library"/pkgconfig "$library"/cmake "$work/libberth-dev/$place/"
strip --strip-debug "$work/libberth-dev/$place/libberth.a"
package libberth-dev "libberth$api (= $version), libc6-dev" libdevel \
  "plans one block of memory for a neural network: for building programs" \
  "The header, the static library, and what pkg-config and CMake look for."

# The tool
mkdir -p "$work/berth/usr/bin" "$work/berth/usr/share/man/man1" "$work/berth/usr/share/bash-completion/completions" \
  "$work/berth/usr/share/fish/vendor_completions.d"
cp -a "$work/all/usr/bin/berth" "$work/berth/usr/bin/"
scripts/man-pages.sh "$work/all/usr/bin/berth" "$work/berth/usr/share/man/man1"
gzip -9n "$work/berth/usr/share/man/man1/"*.1
cp tools/completion/berth.bash "$work/berth/usr/share/bash-completion/completions/berth"
cp tools/completion/berth.fish "$work/berth/usr/share/fish/vendor_completions.d/"
strip "$work/berth/usr/bin/berth"
package berth "$(needs_libc "$work/berth/usr/bin/berth")" science \
  "plans one block of memory for a neural network: the command line" \
  "Plans, runs, measures and inspects models in ONNX and GGUF files."
