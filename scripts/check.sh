#!/usr/bin/env bash
# Builds with gcc under the address and undefined-behaviour sanitizers and with clang, and runs every test in both
# builds; builds once more under the thread sanitizer, for the tests of what threads share. Ends with one line:
#   N passed, N failed, N skipped
# A test program speaks TAP: cmocka does for tests/*/test_*.c, and tests/*/test_*.sh print it themselves.
#   scripts/check.sh [PART...]    only tests whose path contains one of the parts, for example: base/ cli/test_plan
set -uo pipefail
cd "$(dirname "$0")/.."

root=$PWD
jobs=${JOBS:-2}
limit=${BERTH_TEST_TIMEOUT:-900} # seconds for one test program: a hang, not a slow machine
wanted=("$@")
# What other programs say is looked at: it is to be in one language, and a locale that is not installed makes them complain.
export LC_ALL=C.UTF-8
unset LANGUAGE
# There are some two hundred programs to build, over which make takes twice as long.
command -v ninja >/dev/null 2>&1 && export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
. scripts/webgpu-deps.sh
. scripts/web-deps.sh
passed=0 failed=0
builds=()
skipped_builds=()

build() { # preset compiler
  if ! command -v "$2" >/dev/null 2>&1; then
    skipped_builds+=("$1: every test of this build # SKIP $2 is not installed")
    return
  fi
  echo "== building: $1"
  local log=build/$1/build.log
  mkdir -p "build/$1"
  if { cmake --preset "$1" && cmake --build --preset "$1" --parallel "$jobs"; } >"$log" 2>&1; then
    builds+=("$1")
  else
    grep -v '^\[' "$log"
    echo "== the $1 build failed"
    failed=$((failed + 1))
  fi
}

# The thread sanitizer wants its memory at certain addresses. Where the kernel spreads addresses too widely for it,
# programs are run with the spreading off; a kernel may refuse that too.
tsan_reason= tsan_runner=
find_tsan() {
  local probe
  command -v gcc >/dev/null 2>&1 || { tsan_reason="gcc is not installed"; return 1; }
  probe=$(mktemp)
  if ! echo 'int main(void) { return 0; }' | gcc -fsanitize=thread -x c -o "$probe" - 2>/dev/null; then
    tsan_reason="gcc has no thread sanitizer here (libtsan)"
  elif "$probe" 2>/dev/null; then
    tsan_runner=
  elif setarch -R "$probe" 2>/dev/null; then
    tsan_runner="setarch -R"
  else
    tsan_reason="the thread sanitizer cannot have the addresses that it needs (vm.mmap_rnd_bits)"
  fi
  rm -f "$probe"
  [ -z "$tsan_reason" ]
}

build_tsan() {
  [ -n "$(tsan_tests)" ] || return 0
  if find_tsan; then build tsan gcc; else skipped_builds+=("tsan: every test of this build # SKIP $tsan_reason"); fi
}

build_web() {
  if ! web_toolchain; then
    skips+=("web: the page and the package # SKIP $web_reason")
    return
  fi
  echo "== building: web"
  mkdir -p build
  if ! JOBS=$jobs BERTH_WEB=build/web scripts/build-web.sh >build/web.log 2>&1; then
    grep -v '^\[' build/web.log
    echo "== the web build failed"
    failed=$((failed + 1))
    web_reason="the build failed"
  fi
}

is_wanted() {
  [ ${#wanted[@]} -eq 0 ] && return 0
  local part
  for part in "${wanted[@]}"; do [[ $1 == *"$part"* ]] && return 0; done
  return 1
}

tsan_tests() { # tests/<area>/test_<name>.c that are built and wanted; as thread_tests in cmake/Tests.cmake
  local source name
  for source in tests/base/test_thread.c tests/threads/test_*.c; do
    name=${source#tests/}
    name=${name%.c}
    is_wanted "$name" && echo "$name"
  done
}

# One line per test program: build, name (area/test_name), command. The tests of the rules and of the installed copy
# look at things that do not depend on the build, and what a driver or a browser does takes long, so one build is enough
# for them; it is the last one, which has no sanitizers.
list_tests() {
  local b source name
  for b in "${builds[@]}"; do
    if [ "$b" = tsan ]; then
      for name in $(tsan_tests); do echo "$b $name build/$b/tests/$name"; done
      continue
    fi
    for source in tests/*/test_*.c; do
      name=${source#tests/}
      name=${name%.c}
      # Dawn takes four times as long where its memory is watched, which is not ours.
      [ "$b $name" = "check device/test_webgpu" ] && [ -z "${BERTH_TEST_SLOW-}" ] && continue
      is_wanted "$name" && echo "$b $name build/$b/tests/$name"
    done
    for source in tests/*/test_*.sh; do
      name=${source#tests/}
      name=${name%.sh}
      case $name in
        gpu/*vulkan | gpu/*webgpu | gpu/*cuda | gpu/test_peak | install/* | python/test_types | rules/* | web/*) [ "$b" = "$single" ] || continue ;;
      esac
      is_wanted "$name" && echo "$b $name $source"
    done
  done
}

# Tests of pages wait for most of their time. Spread among the others, they leave no core idle at the end.
spread_waiting() {
  awk '$2 ~ /^web\// { waits[++n] = $0; next }
    { others[++m] = $0 }
    END {
      step = int(m * 2 / 3 / (n + 1)) + 1
      for (i = 1; i <= m; i++) { print others[i]; if (i % step == 0 && k < n) print waits[++k] }
      while (k < n) print waits[++k]
    }'
}

run_test() { # build name command
  local log=build/$1/logs/$2.log
  mkdir -p "$(dirname "$log")"
  local runner=() seconds=$limit
  [ "$2" = rules/test_tidy ] && seconds=$((limit * 3)) # it looks at every file
  [[ $3 == *.sh ]] && runner=(bash)
  [ "$1" = tsan ] && runner=($tsan_runner)
  case $2 in # the tests of Vulkan have another driver
    *webgpu* | *wgsl* | web/*)
      export BERTH_WEBGPU_LIBRARY=$webgpu_library
      [ -z "$webgpu_driver" ] || export VK_ICD_FILENAMES=$webgpu_driver
      ;;
  esac
  export BERTH_SRC=$root BERTH_BUILD=$root/build/$1 BERTH_BIN=$root/build/$1/berth
  export BERTH_WEB=$root/build/web BERTH_WEB_TESTS=$root/$web_tests
  export BERTH_WEB_REASON=$web_reason BERTH_PACKAGES_REASON=$packages_reason
  export CMOCKA_MESSAGE_OUTPUT=TAP
  export GALLIVM_PERF=nopt # Mesa's CPU driver: kernels run a few times here, and optimising them takes twice as long
  # Undefined behaviour is a trap: what would describe it makes the library half as large again and slow to load. The
  # address sanitizer shows where it was.
  export ASAN_OPTIONS=handle_sigill=1:detect_leaks=1:allocator_may_return_null=1:detect_stack_use_after_return=1
  export TSAN_OPTIONS=halt_on_error=0
  local TIMEFORMAT='%R %U %S'
  { time timeout -k 10 "$seconds" "${runner[@]}" "$3" >"$log" 2>&1 </dev/null; } 2>"$log.time"
  echo $? >"$log.status"
}

# Reads one log; prints "passed failed" and then a line for each skipped test.
summarise() { # log status
  awk -v status="$2" '
    /^1\.\.[0-9]+/ { planned += substr($1, 4) }
    /^# skip: / { reason = substr($0, 9) }
    /^(not )?ok [0-9]/ && /# *[Ss][Kk][Ii][Pp]/ {
      name = $0
      sub(/^(not )?ok [0-9]+ *(- )?/, "", name)
      if (name ~ /^# *[Ss][Kk][Ii][Pp]/) { sub(/^# *[Ss][Kk][Ii][Pp] */, "", name); name = name " # SKIP " reason }
      skips[++skipped] = name
      reason = ""
      next
    }
    /^ok [0-9]/ { passed++ }
    /^not ok [0-9]/ { failed++ }
    END {
      if (passed + failed + skipped < planned) failed += planned - passed - failed - skipped
      if (status != 0 && failed == 0) failed = 1
      if (passed + failed + skipped == 0) failed = 1
      print passed + 0, failed + 0
      for (i = 1; i <= skipped; i++) print skips[i]
    }' "$1"
}

build check gcc
build_tsan
build clang clang
for b in "${builds[@]}"; do rm -rf "build/$b/logs"; done

export -f run_test
shopt -s nullglob
single= # the build that runs what one build is enough for
for b in "${builds[@]}"; do [ "$b" = tsan ] || single=$b; done
tests=$(list_tests | spread_waiting)
skips=("${skipped_builds[@]}")
if [[ $tests == *webgpu* || $tests == *wgsl* || $tests == *" web/"* ]] && ! webgpu_find; then
  skips+=("webgpu: Dawn # SKIP $webgpu_reason")
fi
if [[ $tests == *" web/"* ]]; then
  build_web
  web_install || skips+=("web: packages of npm # SKIP $packages_reason")
fi
if [ -n "$npm_wrong" ]; then
  echo "== from npm, not as pinned: $npm_wrong"
  failed=$((failed + 1))
fi
export root limit tsan_runner webgpu_library webgpu_driver web_tests web_reason packages_reason
echo "== testing"
tests_began=$SECONDS
# Two more than there are cores: tests of pages and devices spend much of their time waiting. With one more, two cores
# were idle for a quarter of the time.
echo "$tests" | xargs -r -P "$((jobs + 2))" -L 1 bash -c 'run_test "$@"' run_test

while read -r b name _; do
  [ -n "$b" ] || continue
  log=build/$b/logs/$name.log
  status=$(cat "$log.status" 2>/dev/null || echo lost)
  { read -r p f; mapfile -t new_skips; } < <(summarise "$log" "$status")
  passed=$((passed + p)) failed=$((failed + f))
  for s in "${new_skips[@]}"; do skips+=("$b $name: $s"); done
  printf '%-7s %-32s %4d passed%s\n' "$b" "$name" "$p" "$([ "$f" -gt 0 ] && echo ", $f FAILED (exit status $status)")"
  if [ "$f" -gt 0 ]; then
    [ "$status" = 124 ] && echo "    it ran for more than $limit seconds"
    grep -v '^ok ' "$log" | sed 's/^/    /' | tail -n 200
  fi
done <<<"$tests"

for s in "${skips[@]}"; do echo "skipped: $s"; done
echo "== $SECONDS seconds, $((SECONDS - tests_began)) of them testing; the longest tests, in seconds of a core:"
find build -path '*/logs/*.time' -exec awk 'NF == 3 { n = FILENAME; sub(/^build\//, "", n); sub(/\.log\.time$/, "", n)
  sub(/logs\//, "", n); printf "%7.1f  %s\n", $2 + $3, n }' {} + | sort -rn | head -n 12
echo "$passed passed, $failed failed, ${#skips[@]} skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
