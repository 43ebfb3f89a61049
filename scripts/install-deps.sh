#!/usr/bin/env bash
# Installs what is missing on this machine with its package manager, and says what it does.
#   scripts/install-deps.sh run      a C compiler, make and cmake: enough to build and run
#   scripts/install-deps.sh web      also what berth in WebAssembly needs
#   scripts/install-deps.sh check    also what the tests need
# When nothing can be installed (no rights, no network), it says what is missing. It fails only when nothing could be
# built without it.
set -uo pipefail

mode=${1:-run}
case $mode in
  run | web | check) ;;
  *) echo "usage: $0 run|web|check" >&2; exit 2 ;;
esac

have() { command -v "$1" >/dev/null 2>&1; }
have_header() { echo "#include <$1>" | cc -E -x c - >/dev/null 2>&1; }
have_cpp() { echo '#include <vector>' | c++ -E -x c++ - >/dev/null 2>&1; }

missing=()  # packages
need=()     # those without which nothing can be built
browser=()  # for the page and WebGPU; other systems have them under other names

have cc && { [ "$mode" = run ] || have gcc; } || need+=(gcc)
have cc && have_header stdio.h || need+=(libc6-dev)
have make || need+=(make)
have cmake || need+=(cmake)
clang=$(clang -dumpversion 2>/dev/null | cut -d . -f 1)
clang=${clang:-14} # what Debian 12 has
if [ "$mode" != run ]; then # the WebAssembly module: its compiler, linker and C library; and what runs it
  have clang || missing+=(clang)
  have wasm-ld || missing+=(lld)
  [ -d /usr/include/wasm32-wasi ] || missing+=(wasi-libc)
  compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/wasi/*' >/dev/null || missing+=("libclang-rt-$clang-dev-wasm32")
  have node || missing+=(nodejs)
fi
if [ "$mode" = check ]; then
  have cc && have_header cmocka.h || need+=(libcmocka-dev)
  have c++ && have_cpp || missing+=(g++)
  have pkg-config || missing+=(pkg-config)
  have ninja || missing+=(ninja-build)
  have python3 || missing+=(python3)
  # the Python extension and its tests
  compgen -G '/usr/include/python3.*/Python.h' >/dev/null || missing+=(python3-dev)
  [ -d /usr/lib/python3/dist-packages/numpy ] || missing+=(python3-numpy)
  have mypy || missing+=(mypy)
  compgen -G '/usr/lib/python3*/ensurepip/__init__.py' >/dev/null || missing+=(python3-venv)
  have debootstrap || [ -x /usr/sbin/debootstrap ] || missing+=(debootstrap) # for make check-slow; plain users have no sbin
  have cbc || missing+=(coinor-cbc) # the referee of budgets
  have clang-format || missing+=(clang-format)
  have clang-tidy || missing+=(clang-tidy)
  [ -d /usr/share/libonnx-testdata ] || missing+=(libonnx-testdata)
  # the Vulkan device, a driver that runs it on the CPU, and the layer that checks it
  have cc && have_header vulkan/vulkan.h || missing+=(libvulkan-dev)
  have cc && have_header volk.h || missing+=(libvulkan-volk-dev)
  have cc && have_header shaderc/shaderc.h || missing+=(libshaderc-dev)
  have spirv-val || missing+=(spirv-tools) # and with it the archives that shaderc is linked from
  compgen -G '/usr/share/vulkan/icd.d/*.json' >/dev/null || missing+=(mesa-vulkan-drivers)
  compgen -G '/usr/share/vulkan/explicit_layer.d/*validation*' >/dev/null || missing+=(vulkan-validationlayers)
  have chromium || browser+=(chromium) # and with it SwiftShader, which Dawn runs on
  have firefox || have firefox-esr || browser+=(firefox-esr)
  have npm || browser+=(npm)
fi
all=("${need[@]}" "${missing[@]}" "${browser[@]}")
[ ${#all[@]} -eq 0 ] && exit 0

give_up() {
  echo "install-deps: $1" >&2
  echo "install-deps: missing: ${all[*]}; install them by hand" >&2
  [ ${#need[@]} -eq 0 ] || exit 1
  echo "install-deps: going on without" >&2
  exit 0
}

have apt-get || give_up "there is no apt-get on this machine"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  have sudo || give_up "not root, and there is no sudo"
  as_root=(sudo)
  [ -t 0 ] || as_root=(sudo -n)
fi
# Another program may hold the lock for a while, as on a machine that has just started.
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" \
    </dev/null
}
install() { apt install -y --no-install-recommends "$@" >/dev/null; }

echo "install-deps: installing ${all[*]} with apt-get"
apt update >/dev/null || echo "install-deps: the package lists could not be updated; trying with those that are here" >&2
# Together it is quickest. Where that fails, one by one: a package that cannot be had does not hold up the rest.
refused=()
for packages in "${need[*]}" "${missing[*]}" "${browser[*]}"; do
  [ -z "$packages" ] || install -o Acquire::Retries=3 $packages && continue
  for package in $packages; do install "$package" || refused+=("$package"); done
done
if [ ${#refused[@]} -ne 0 ]; then
  all=("${refused[@]}") left=()
  for package in "${need[@]}"; do [[ " ${refused[*]} " == *" $package "* ]] && left+=("$package"); done
  need=("${left[@]}")
  give_up "apt-get could not install ${refused[*]}"
fi
echo "install-deps: done"
