#!/usr/bin/env bash
# Builds berth for browsers and Node: build/web is the page, build/web/package the npm package that it uses. They are
# plain files, for any web server. BERTH_WEB names another folder.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
out=${BERTH_WEB:-build/web}

cmake --preset wasm >/dev/null
cmake --build --preset wasm --parallel "$jobs"

rm -rf "$out"
mkdir -p "$out"
[ ! -d web/page ] || cp -R web/page/. "$out/"
[ ! -d web/page ] || cp examples/tale/tale.gguf "$out/samples/" # the language model that ships
if [ -d web/page ]; then # the network that reads digits, and digits to rehearse while it learns more: behind a header of 128 bytes
  cp examples/digits/digits.berth "$out/samples/"
  head -c $((128 + 600 * 64)) examples/digits/images.npy | tail -c +129 >"$out/samples/digits-images.bin"
  head -c $((128 + 600)) examples/digits/labels.npy | tail -c +129 >"$out/samples/digits-labels.bin"
fi
cp -R web/package "$out/package"
cp LICENSE "$out/package/"
cp build/wasm/berth.wasm build/wasm/berth-threads.wasm "$out/package/"
chmod a-x "$out"/package/*.wasm

# What the service worker keeps: every file that the page may ask for, by its hash.
list_files() (
  cd "$out"
  find . -type f ! -name '*.md' ! -name '*.d.ts' ! -name package.json ! -name LICENSE ! -path ./sw.js ! -path ./files.js |
    LC_ALL=C sort | xargs -d '\n' sha256sum | sed 's|^\([0-9a-f]*\)  \./\(.*\)$|    "\2": "\1",|'
)
files=$(list_files)
version=$(printf '%s' "$files" | sha256sum | cut -c 1-12)
printf 'self.BERTH = {\n  version: "%s",\n  files: {\n%s\n  },\n};\n' "$version" "$files" >"$out/files.js"

for module in "$out"/package/*.wasm; do
  printf '%s: %d bytes, %d with gzip\n' "$module" "$(wc -c <"$module")" "$(gzip -9 -c "$module" | wc -c)"
done
