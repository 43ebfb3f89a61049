#!/usr/bin/env bash
# What is installed is not installed again: a plain user, whose PATH has no sbin, is not asked for a password by every
# `make check`.
. "$BERTH_SRC/tests/support/tap.sh"
if [ ! -x /usr/sbin/debootstrap ]; then
  skip_test "programs in sbin are found" "debootstrap is not installed"
  tap_done
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for program in apt-get sudo; do printf '#!/bin/sh\nexit 1\n' >"$work/$program" && chmod +x "$work/$program"; done
printf '#!/bin/sh\necho 1000\n' >"$work/id" && chmod +x "$work/id"
env PATH="$work:/usr/bin:/bin" "$BERTH_SRC/scripts/install-deps.sh" check >"$work/said" 2>&1
check "programs in sbin are found" test -z "$(grep debootstrap "$work/said")"
tap_done
