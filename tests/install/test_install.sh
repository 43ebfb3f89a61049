#!/usr/bin/env bash
# Installs into a temporary prefix and builds outside programs against that copy, in C and in C++: with pkg-config
# (shared and static) and with CMake's find_package.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

if is_sanitized; then
  skip_test "the installed copy" "this build has sanitizers in it, which outside programs do not"
  tap_done
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
first=$work/first
prefix=$work/moved # the tree is moved after it was installed: nothing in it may know where it was
check "the build installs" cmake --install "$BERTH_BUILD" --prefix "$first"
mv "$first" "$prefix"

libdir=$(dirname "$(find "$prefix" -name libberth.a)")
export PKG_CONFIG_PATH=$libdir/pkgconfig
export LD_LIBRARY_PATH=$libdir

check "the header is installed" test -f "$prefix/include/berth/berth.h"
check "the static library is installed" test -f "$libdir/libberth.a"
check "the shared library is installed" test -e "$libdir/libberth.so"
check "the installed program runs" "$prefix/bin/berth" --version

cp "$BERTH_SRC/tests/install/outside/"* "$work"

build_and_run() { # compiler source flags...
  local compiler=$1 source=$2
  shift 2
  "$compiler" "$work/$source" -o "$work/program" "$@" && "$work/program"
}

with_pkg_config() { # language compiler source
  if ! command -v pkg-config >/dev/null || ! command -v "$2" >/dev/null; then
    skip_test "a $1 program with pkg-config" "pkg-config or $2 is not installed"
    return
  fi
  check "a $1 program with pkg-config, shared" build_and_run "$2" "$3" $(pkg-config --cflags --libs berth)
  check "it uses the shared library" sh -c "ldd '$work/program' | grep -q libberth.so"
  check "a $1 program with pkg-config, static" build_and_run "$2" "$3" -static $(pkg-config --cflags --libs --static berth)
  check_fails "it does not use the shared library" sh -c "ldd '$work/program' | grep -q libberth.so"
}
with_pkg_config C cc outside.c
with_pkg_config C++ c++ outside.cpp

with_cmake() {
  cmake -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$work/build"
}
if command -v c++ >/dev/null; then
  check "outside programs build with CMake's find_package" with_cmake
  for program in c_shared c_static cpp_shared cpp_static; do
    check "$program runs" "$work/build/$program"
  done
else
  skip_test "outside programs build with CMake's find_package" "there is no C++ compiler"
fi
tap_done
