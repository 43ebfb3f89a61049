#!/usr/bin/env bash
# What is installed is not installed again: a plain user, whose PATH has no sbin, is not asked for a password by every
# `make check`. What cannot be installed holds up nothing but what needs it.
. "$BERTH_SRC/tests/support/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- A machine that has nothing but a shell, and an apt-get that notes what it is asked for ----

machine=$work/machine
mkdir -p "$machine"
for program in bash env sh cut tr grep id; do ln -s "$(command -v "$program")" "$machine/$program"; done
rm "$machine/id"
printf '#!/bin/sh\necho 0\n' >"$machine/id"
cat >"$machine/apt-get" <<'APT'
#!/bin/sh
# Like the real one, it installs all that it is asked for, or nothing.
names=
for word; do
  case $word in -* | *=* | install | update) ;; *) names="$names $word" ;; esac
done
for name in $names; do
  case " $REFUSED " in *" $name "*) echo "E: Unable to locate package $name" >&2; exit 100 ;; esac
done
for name in $names; do echo "$name" >>"$INSTALLED"; done
APT
chmod +x "$machine/id" "$machine/apt-get"
installs() { # MODE REFUSED: with the exit code of the script; installed: what was
  : >"$work/installed"
  env -i PATH="$machine" REFUSED="$2" INSTALLED="$work/installed" bash "$BERTH_SRC/scripts/install-deps.sh" "$1" >"$work/said" 2>&1
}
has() { grep -qx "$1" "$work/installed"; }
check "all is installed" installs check ""
check "the compiler is" has gcc
check "the referee is" has coinor-cbc
check "a package of the tests that cannot be had is no error" installs check coinor-cbc
check "it is named" grep -q 'could not install coinor-cbc' "$work/said"
check "what stands beside it is installed" has clang-tidy
check "what comes after it is installed" has chromium
check "a browser that cannot be had is no error" installs check chromium
check "another is installed" has firefox-esr
check_fails "a compiler that cannot be had is one" installs run gcc
check "it is named, too" grep -q 'could not install gcc' "$work/said"

# ---- A plain user ----

if [ ! -x /usr/sbin/debootstrap ]; then
  skip_test "programs in sbin are found" "debootstrap is not installed"
  tap_done
fi
for program in apt-get sudo; do printf '#!/bin/sh\nexit 1\n' >"$work/$program" && chmod +x "$work/$program"; done
printf '#!/bin/sh\necho 1000\n' >"$work/id" && chmod +x "$work/id"
env PATH="$work:/usr/bin:/bin" "$BERTH_SRC/scripts/install-deps.sh" check >"$work/said" 2>&1
check "programs in sbin are found" test -z "$(grep debootstrap "$work/said")"
tap_done
