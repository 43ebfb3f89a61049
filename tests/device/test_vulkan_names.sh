#!/usr/bin/env bash
# The device vulkan brings no names of Vulkan into programs that use the library, and links to nothing.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

if ! command -v nm >/dev/null || ! command -v readelf >/dev/null; then
  skip_test "names of Vulkan" "there is no nm or readelf"
  tap_done
fi

nothing() { # pattern command...: no line of its output has the pattern
  local pattern=$1 found
  shift
  found=$("$@" 2>/dev/null | grep -E "$pattern")
  [ -z "$found" ] || { echo "$found" | head -5; return 1; }
}

check "the static library defines none" nothing ' (vk[A-Z]|volk)' nm -g --defined-only "$BERTH_BUILD/libberth.a"
for file in libberth.so berth; do
  if [ -f "$BERTH_BUILD/$file" ]; then
    check "$file needs neither Vulkan nor shaderc" nothing 'NEEDED.*(vulkan|shaderc)' readelf -d "$BERTH_BUILD/$file"
  else
    skip_test "$file needs neither Vulkan nor shaderc" "it was not built"
  fi
done
tap_done
