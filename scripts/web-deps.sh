# Sourced by scripts/check.sh, from the repository's root: what tests/web needs. The page and the package are built into
# build/web; what drives a browser and reads types (tests/web/package.json) comes from npm, into build/web-tests.
web_tests=build/web-tests
web_reason=      # why there is no build/web
packages_reason= # why there is nothing from npm

web_toolchain() { # what scripts/build-web.sh needs
  local program
  for program in clang wasm-ld node; do
    command -v $program >/dev/null || { web_reason="$program is not installed"; return 1; }
  done
  [ -d /usr/include/wasm32-wasi ] || { web_reason="wasi-libc is not installed"; return 1; }
}

web_install() {
  cmp -s tests/web/package.json $web_tests/package.json && return
  command -v npm >/dev/null || { packages_reason="npm is not installed"; return 1; }
  echo "== installing playwright-core and its kin into $web_tests" >&2
  rm -rf $web_tests
  mkdir -p $web_tests
  cp tests/web/package.json $web_tests
  npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error --prefix $web_tests >&2 </dev/null ||
    { rm -rf $web_tests; packages_reason="npm could not install what tests/web/package.json names"; return 1; }
}
