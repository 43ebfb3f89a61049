#!/usr/bin/env bash
# What is handed out: the wheel, the Debian packages, the static program, the manual pages and the completion. With
# BERTH_TEST_SLOW each is installed in a clean place and used there, pip builds from the sources, and the static program
# is built; otherwise what costs little is looked at. Packages are made of the build under test.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"
if is_sanitized; then
  skip_test "packages" "this build has sanitizers in it, which no package has"
  tap_done
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(sed -n 's/#define BERTH_VERSION "\(.*\)"/\1/p' "$BERTH_SRC/include/berth/berth.h")
python=$(sed -n 's/^BERTH_PYTHON_EXECUTABLE:[A-Z]*=//p' "$BERTH_BUILD/CMakeCache.txt")
extension=$BERTH_BUILD/python/berth/_berth.abi3.so

# ---- The wheel ----

use_python='
import array, berth, pathlib
assert pathlib.Path(berth.__file__).is_relative_to(__import__("sys").prefix), berth.__file__
graph = berth.Graph()
x = graph.input("x", "f32", [2])
graph.output("y", x + x)
[y] = graph.session().run(None, {"x": array.array("f", [1, 2])})
assert memoryview(y).tolist() == [2, 4]
print(berth.__version__)'

install_wheel() { # VENV ARGUMENT...: with pip, without a network
  local venv=$1
  shift
  "$python" -m venv "$venv" && "$venv/bin/pip" install -q --no-index --disable-pip-version-check "$@"
}
runs_there() { [ "$(cd "$work" && "$1/bin/python" -c "$use_python")" = "$version" ]; }
make_wheel() { "$python" "$BERTH_SRC/python/build_backend.py" "$work/wheels" "$extension"; }
tag_is_true() { # the oldest glibc that the name promises has every symbol: as binutils sees it
  local promised newest
  promised=$(basename "$work"/wheels/*.whl | sed -n 's/.*-manylinux_\([0-9]*\)_\([0-9]*\)_.*/\1.\2/p')
  newest=$(objdump -T "$extension" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -n 1)
  echo "the name promises glibc $promised, and $newest is asked for"
  [ -n "$promised" ] && [ "$(printf '%s\n2.5\n' "$newest" | sort -V | tail -n 1)" = "$promised" ]
}
limited() { # no function of Python that its limited API does not promise, and the library is not seen from outside
  "$python" - "$extension" <<'PYTHON'
import re, subprocess, sys
said = subprocess.run(["nm", "-D", sys.argv[1]], capture_output=True, text=True, check=True).stdout
asked = set(re.findall(r" U (_?Py\w+)", said))
# Names with an underscore that are promised none the less: what macros of the limited API stand for.
promised = {"_Py_Dealloc", "_Py_NoneStruct", "_Py_TrueStruct", "_Py_FalseStruct", "_Py_IncRef", "_Py_DecRef",
    "_Py_BuildValue_SizeT", "_PyObject_New", "_PyObject_CallFunction_SizeT", "_PyObject_CallMethod_SizeT",
    "_PyArg_ParseTuple_SizeT", "_PyArg_ParseTupleAndKeywords_SizeT"}
strange = {name for name in asked if name.startswith("_Py") and name not in promised}
assert asked and not strange, strange
defined = set(re.findall(r" [TDBR] (\w+)", said))
assert {name for name in defined if name.startswith(("berth", "Py"))} == {"PyInit__berth"}, defined
PYTHON
}
if [ -f "$extension" ] && "$python" -c 'import venv, ensurepip' 2>/dev/null; then
  check "a wheel is made" make_wheel
  check "its name says what it asks of the C library" tag_is_true
  check "it keeps to Python's limited API" limited
  if [ -n "${BERTH_TEST_SLOW-}" ]; then
    check "it is installed" install_wheel "$work/venv" "$work"/wheels/*.whl
    check "it runs, without numpy" runs_there "$work/venv"
    check "pip install . works without a network" install_wheel "$work/from-source" "$BERTH_SRC"
    check "what it installed runs" runs_there "$work/from-source"
  else
    skip_test "the wheel is installed, and pip install . works" "make check-slow does that: it takes minutes"
  fi
else
  skip_test "the wheel" "the extension is not built, or Python has no venv (Debian: python3-dev, python3-venv)"
fi

# ---- The manual and the completion ----

pages() { # a page for every verb, of which man has nothing to complain, and which has every option of --help
  local verb page n=0
  "$BERTH_SRC/scripts/man-pages.sh" "$BERTH_BIN" "$work/man" || return 1
  for verb in $("$BERTH_BIN" help | awk '/^  [a-z]+  / && $1 != "help" { print $1 }'); do
    page=$work/man/berth-$verb.1
    grep -q 'SH NAME' "$page" && grep -q 'SH OPTIONS' "$page" || { echo "$verb: no options"; return 1; }
    while read -r option; do
      grep -qF -- "${option//-/\\-}" "$page" || { echo "$verb: $option is missing"; return 1; }
    done < <("$BERTH_BIN" help "$verb" | grep -oE '^  --[a-z0-9-]+' | tr -d ' ')
    ! command -v man >/dev/null || [ -z "$(man --warnings -l -Tutf8 "$page" 2>&1 >/dev/null)" ] ||
      { echo "$verb: man complains"; return 1; }
    n=$((n + 1))
  done
  [ "$n" -gt 5 ]
}
completes() { # LINE WANTED: the last word of the line is completed to this
  PATH=$(dirname "$BERTH_BIN"):$PATH bash -c '
    . "$1/tools/completion/berth.bash"
    read -ra COMP_WORDS <<<"$2"; [[ $2 == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _berth; printf "%s\n" "${COMPREPLY[@]}" | grep -qx -- "$3"' _ "$BERTH_SRC" "$1" "$2"
}
check "there is a manual page for every verb, with every option" pages
check "verbs are completed" completes "berth pl" plan
check "options are completed" completes "berth run --thr" --threads
check "devices are completed" completes "berth run --device c" cpu

# ---- The Debian packages ----

root=$work/root
unpack_deb() { # as dpkg would, into a folder of its own: nothing of this machine is changed
  mkdir -p "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/info" && : >"$root/var/lib/dpkg/status" || return 1
  local deb
  for deb in "$work"/debs/*.deb; do dpkg-deb --extract "$deb" "$root" || return 1; done
}
depends_is_true() { # on a C library no older than its symbols, and on its own library
  local api=${version%.*}
  dpkg-deb -f "$work/debs/berth_${version}_"*.deb Depends | grep -qE '^libc6 \(>= 2\.[0-9]+\)' &&
    dpkg-deb -f "$work/debs/libberth-dev_"*.deb Depends | grep -q "libberth$api (= $version)"
}
builds_there() {
  local pc
  pc=$(dirname "$(find "$root" -name berth.pc)")
  cc "$BERTH_SRC/tests/install/outside/outside.c" -o "$work/outside" $(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs berth) &&
    LD_LIBRARY_PATH=$(dirname "$pc") "$work/outside"
}
if [ -z "${BERTH_TEST_SLOW-}" ]; then
  skip_test "the Debian packages" "make check-slow does that"
elif command -v dpkg-deb >/dev/null; then
  check "Debian packages are made" "$BERTH_SRC/scripts/package-deb.sh" "$BERTH_BUILD" "$work/debs"
  check "there are three" test "$(ls "$work/debs" | wc -l)" = 3
  check "they say what they need" depends_is_true
  check "they unpack" unpack_deb
  check "the tool runs from there" "$root/usr/bin/berth" run --json
  check "a program builds against the library there, and runs" builds_there
  check "its manual and completion are there" ls "$root/usr/share/man/man1/berth-run.1.gz" \
    "$root/usr/share/bash-completion/completions/berth"
else
  skip_test "the Debian packages" "dpkg-deb is not installed"
fi

# ---- The static program ----

alone=$work/alone # a root with nothing in it but the program
in_empty_root() {
  mkdir -p "$alone" && tar -C "$alone" --strip-components=1 -xzf "$work"/dist/berth-*.tar.gz || return 1
  if [ "$(id -u)" = 0 ]; then chroot "$alone" /berth "$@"; else unshare -r chroot "$alone" /berth "$@"; fi
}
old_kernel() { # what its C library was made for: 3.2 is of January 2012
  readelf -n "$alone/berth" | grep -q 'OS: Linux, ABI: [23]\.'
}
if [ -n "${BERTH_TEST_SLOW-}" ] && (chroot / true || unshare -r chroot / true) 2>/dev/null; then
  check "the archive is made" env BERTH_DIST_BUILD="$work/dist-build" "$BERTH_SRC/scripts/dist.sh" "$work/dist"
  check "its program runs where there is nothing else" in_empty_root run --json
  cp "$BERTH_SRC/examples/tale/tale.gguf" "$alone"
  check "it generates text there" in_empty_root generate /tale.gguf -p Once -n 5
  check "its C library asks for an old kernel alone" old_kernel
else
  skip_test "the static program" "make check-slow does that, where chroot is allowed: it compiles everything"
fi

# ---- Everything above, in systems that have nothing else ----

system() { # SUITE PACKAGES: Debian's smallest system of that release, in $work/SUITE
  debootstrap --variant=minbase ${2:+--include=$2} "$1" "$work/$1" >"$work/$1.log" 2>&1 || { tail -n 5 "$work/$1.log"; return 1; }
}
there() { # SUITE COMMAND...
  local suite=$1
  shift
  chroot "$work/$suite" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"
}
static_there() { # SUITE: the archive, unpacked in it
  mkdir -p "$work/$1/opt/berth" && tar -C "$work/$1/opt/berth" --strip-components=1 -xzf "$work"/dist/berth-*.tar.gz &&
    there "$1" /opt/berth/berth run --json && there "$1" /opt/berth/berth generate /opt/tale.gguf -p Once -n 5
}
debs_there() { # SUITE: dpkg is asked whether what they depend on is there
  cp "$work"/debs/*.deb "$work/$1/tmp/" && there "$1" sh -c 'dpkg -i /tmp/*.deb' && there "$1" berth run --json &&
    there "$1" berth generate /opt/tale.gguf -p Once -n 5
}
wheel_there() { # SUITE
  cp "$work"/wheels/*.whl "$work/$1/tmp/" && printf '%s\n' "$use_python" >"$work/$1/tmp/use.py" &&
    there "$1" python3 -m venv /opt/venv &&
    there "$1" sh -c '/opt/venv/bin/pip install -q --no-index --disable-pip-version-check /tmp/*.whl' &&
    [ "$(there "$1" /opt/venv/bin/python /tmp/use.py)" = "$version" ]
}
try_system() { # SUITE PACKAGES WHAT...
  local suite=$1 packages=$2 what
  shift 2
  if ! system "$suite" "$packages"; then
    skip_test "a system of $suite" "debootstrap could not make one: no network, or the release is gone"
    return
  fi
  cp "$BERTH_SRC/examples/tale/tale.gguf" "$work/$suite/opt/"
  for what; do check "$suite: the $what runs" "${what}_there" "$suite"; done
}
if [ -z "${BERTH_TEST_SLOW-}" ] || [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
  skip_test "clean systems" "make check-slow does that, as root, where debootstrap is installed"
elif ! compgen -G "$work/dist/*.tar.gz" >/dev/null || ! compgen -G "$work/wheels/*.whl" >/dev/null || [ ! -d "$work/debs" ]; then
  skip_test "clean systems" "the wheel, the Debian packages or the archive were not made"
else
  try_system bullseye "" static                            # the oldest that Debian's mirrors have
  try_system bookworm python3-venv,libc6-dev static debs wheel # Python 3.11; the headers need those of C
  try_system trixie python3-venv,libc6-dev static debs wheel   # Python 3.13
fi
tap_done
