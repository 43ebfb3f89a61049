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

# vite, webpack, esbuild and Rollup, with all that they need; two of them are programs of this machine's kind.
web_bundlers="
  @esbuild/linux-x64 @jridgewell/gen-mapping @jridgewell/resolve-uri @jridgewell/source-map
  @jridgewell/sourcemap-codec @jridgewell/trace-mapping @rollup/rollup-linux-x64-gnu @webassemblyjs/ast
  @webassemblyjs/floating-point-hex-parser @webassemblyjs/helper-api-error @webassemblyjs/helper-buffer
  @webassemblyjs/helper-numbers @webassemblyjs/helper-wasm-bytecode @webassemblyjs/helper-wasm-section
  @webassemblyjs/ieee754 @webassemblyjs/leb128 @webassemblyjs/utf8 @webassemblyjs/wasm-edit @webassemblyjs/wasm-gen
  @webassemblyjs/wasm-opt @webassemblyjs/wasm-parser @webassemblyjs/wast-printer @xtuc/ieee754 @xtuc/long acorn ajv
  ajv-formats ajv-keywords baseline-browser-mapping browserslist buffer-from caniuse-lite chrome-trace-event commander
  electron-to-chromium enhanced-resolve es-module-lexer esbuild escalade events fast-deep-equal fast-uri fdir
  graceful-fs has-flag jest-worker json-schema-traverse merge-stream mime-db minimizer-webpack-plugin nanoid
  node-releases picocolors picomatch postcss require-from-string rollup schema-utils source-map source-map-js
  source-map-support supports-color tapable terser tinyglobby update-browserslist-db vite watchpack webpack
  webpack-sources"

web_install() {
  npm_packages $web_tests axe-core playwright-core typescript || { packages_reason=$npm_reason; return 1; }
  [ "$(uname -sm)" = "Linux x86_64" ] || return 0 # the test of bundlers is skipped, by name
  npm_packages $web_tests $web_bundlers || { packages_reason=$npm_reason; return 1; }
}
