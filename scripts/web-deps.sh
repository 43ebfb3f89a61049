# Sourced by scripts/check.sh, from the repository's root: what tests/web needs. The page and the package are built into
# build/web; what drives a browser and reads types comes from npm, into build/web-tests.
. scripts/npm.sh
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
  local package
  for package in axe-core playwright-core typescript; do
    npm_package $package $web_tests || { packages_reason=$npm_reason; return 1; }
  done
}
