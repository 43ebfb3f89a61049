#!/usr/bin/env bash
# Packages from npm are pinned: scripts/npm.sh takes the archive whose hash the list has, and no other. Here npm is a
# script that hands out whatever archive this test has put down.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
mkdir -p "$here/bin" "$here/shop" "$here/make/package"
cat >"$here/bin/npm" <<'END'
#!/bin/sh
[ -e "$SHOP/closed" ] && exit 1
for last; do :; done
echo "$last" >>"$SHOP/asked"
cp "$SHOP/thing.tgz" "thing-${last#*@}.tgz"
END
chmod +x "$here/bin/npm"
export SHOP=$here/shop PATH=$here/bin:$PATH BERTH_NPM_LIST=$here/list

offer() { # TEXT: what the package has in it from now on
  echo "$1" >"$here/make/package/file"
  tar -czf "$SHOP/thing.tgz" -C "$here/make" package
}
pin() { echo "$(sha512sum <"$SHOP/thing.tgz" | cut -d ' ' -f 1)  thing-$1.tgz" >"$BERTH_NPM_LIST"; } # VERSION

install() { # in a shell of its own; prints what came of it
  (cd "$BERTH_SRC" && . scripts/npm.sh && npm_package thing "$here/into" 2>/dev/null
    echo "status $?; reason: $npm_reason; wrong: $npm_wrong; file: $(cat "$here/into/node_modules/thing/file" 2>/dev/null)")
}
gives() { # EXPECTED (a pattern)
  local got
  got=$(install)
  [[ $got == $1 ]] || { echo "$got"; return 1; }
}

offer one
pin 1.0
check "what is pinned is unpacked" gives "status 0; reason: ; wrong: ; file: one"
check "npm was asked for that version" grep -qx thing@1.0 "$SHOP/asked"
touch "$SHOP/closed"
check "what is there needs no network" gives "status 0; *file: one"
pin 1.1
check "another version does, and without a network the reason is given" gives "status 1; reason: npm could not get thing 1.1; wrong: ;*"
rm "$SHOP/closed"
offer two
check "a wrong hash is an error, and nothing of it is unpacked" \
  gives "status 1; reason: thing-1.1.tgz from npm does not have the hash*; wrong: thing-1.1.tgz; file: one"
check "the archive does not stay" test ! -e "$here/into/thing-1.1.tgz"
pin 1.1
check "with the right one the new version takes the place of the old" gives "status 0; *file: two"
sed -i 's/thing/other/' "$BERTH_NPM_LIST"
check "what the list does not have is not asked for" gives "status 1; reason: thing is not in *; wrong: ;*"

# A scope is part of the name, and of the archive's name in another way.
cat >"$here/bin/npm" <<'END'
#!/bin/sh
for last; do :; done
echo "$last" >>"$SHOP/asked"
cp "$SHOP/thing.tgz" "scope-thing-${last##*@}.tgz"
END
sed -i 's/other-/scope-thing-/' "$BERTH_NPM_LIST"
scoped() { (cd "$BERTH_SRC" && . scripts/npm.sh && npm_package @scope/thing "$here/into" 2>/dev/null && cat "$here/into/node_modules/@scope/thing/file"); }
check "a package with a scope is unpacked" test "$(scoped)" = two
check "npm was asked for it by its name" grep -qx @scope/thing@1.1 "$SHOP/asked"

# The list itself, and the scripts that go by it.
names_pinned() {
  local name bad=0
  while read -r name; do
    name=${name#@} name=${name//\//-}
    grep -qE "^[0-9a-f]{128}  $name-[0-9][^ ]*\.tgz$" "$BERTH_SRC/scripts/npm-packages.sha512" || { echo "$name"; bad=1; }
  done < <(grep -hoE '(bun-webgpu|doe-gpu)-[a-z0-9-]+|axe-core|playwright-core|typescript|onnxruntime-(node|common)|com\.github\.[a-z0-9.]+|@milk2025/llama-cpp-source' \
    "$BERTH_SRC"/scripts/*-deps.sh | sort -u)
  return $bad
}
check "every package that a script takes is in the list" names_pinned
check "nothing is installed past the list" bash -c '! grep -nE "npm (install|i|ci|exec) |npx " "$BERTH_SRC"/scripts/*.sh "$BERTH_SRC"/Makefile'
tap_done
