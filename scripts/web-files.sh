#!/usr/bin/env bash
# Writes FOLDER/files.js: the version, and the SHA-256 of every file there, for the page's service worker (web/page/sw.js).
set -euo pipefail

folder=${1:?usage: web-files.sh FOLDER}
cd "$folder"
list=$(find . -type f ! -name files.js ! -name sw.js ! -name '*.md' ! -name '*.d.ts' ! -name package.json |
  LC_ALL=C sort | sed 's@^\./@@' | xargs -d '\n' sha256sum)
version=$(sha256sum <<<"$list" | cut -c1-16)
{
  echo "/* Made by scripts/web-files.sh. */"
  echo "self.BERTH = { version: '$version', files: {"
  while read -r hash file; do echo "  '$file': '$hash',"; done <<<"$list"
  echo "} };"
} >files.js
