#!/usr/bin/env bash
# Makes an archive with a berth that needs nothing of the system it runs on but a Linux kernel of 2012 or later: linked
# statically, for the CPU. GPUs are left out, as their drivers are opened at run time and want the system's C library.
#   scripts/dist.sh FOLDER    BERTH_DIST_BUILD keeps the build elsewhere than build/dist
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1 build=${BERTH_DIST_BUILD:-build/dist}
version=$(sed -n 's/#define BERTH_VERSION "\(.*\)"/\1/p' include/berth/berth.h)
name=berth-$version-linux-$(uname -m)
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DBERTH_STATIC=ON -DBERTH_VULKAN=OFF -DBERTH_WEBGPU=OFF \
  -DBERTH_CUDA=OFF ${BERTH_DIST_CMAKE-} >/dev/null
cmake --build "$build" --parallel "${JOBS:-2}" --target berth_tool
! readelf -l "$build/berth" | grep -q INTERP || { echo "dist: $build/berth asks for a loader" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/$name/man" "$work/$name/completion" "$out"
cp "$build/berth" "$work/$name/"
strip "$work/$name/berth"
cp LICENSE README.md "$work/$name/"
cp tools/completion/* "$work/$name/completion/"
scripts/man-pages.sh "$work/$name/berth" "$work/$name/man"
tar -C "$work" --owner=0 --group=0 --sort=name -czf "$out/$name.tar.gz" "$name"
echo "$out/$name.tar.gz"
