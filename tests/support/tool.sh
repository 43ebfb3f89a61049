# For shell tests of one verb: runs the tool in a folder of its own, which goes at the end. Source it after tap.sh.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

run() { "$BERTH_BIN" "$@" >out 2>err; }
exits() { # what, code, arguments...
  local what=$1 want=$2 code=0
  shift 2
  run "$@" || code=$?
  check "$what" test "$code" = "$want"
}
refuses() { # what, code, message, arguments...
  local what=$1 want=$2 message=$3
  shift 3
  exits "$what: exit code" "$want" "$@"
  check "$what: message" grep -qF -- "$message" err
}
field() { /usr/bin/env python3 -c 'import json, sys; print(json.load(open("out"))[sys.argv[1]])' "$1"; } # of JSON
