# For shell tests: each check is a line of TAP. Source it, call the functions, end with tap_done.
# What a sanitizer finds has an exit code of its own: that of a refusal would hide a leak.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}exitcode=77

tap_count=0
tap_failed=0

ok() { # name
  tap_count=$((tap_count + 1))
  echo "ok $tap_count - $1"
}

not_ok() { # name explanation
  tap_count=$((tap_count + 1))
  tap_failed=1
  echo "not ok $tap_count - $1"
  echo "${2-}" | sed 's/^/# /'
}

skip_test() { # name reason
  tap_count=$((tap_count + 1))
  echo "ok $tap_count - $1 # SKIP $2"
}

check() { # name command...: the command must succeed; its output is shown when it does not
  local name=$1 output
  shift
  if output=$("$@" 2>&1 </dev/null); then ok "$name"; else not_ok "$name" "$output"; fi
}

check_fails() { # name command...: the command must not succeed
  local name=$1 output
  shift
  if output=$("$@" 2>&1 </dev/null); then not_ok "$name" "$output"; else ok "$name"; fi
}

is_sanitized() { grep -q '^BERTH_SANITIZE:[A-Z]*=.' "$BERTH_BUILD/CMakeCache.txt"; } # the build under test

tap_done() {
  echo "1..$tap_count"
  exit $tap_failed
}
