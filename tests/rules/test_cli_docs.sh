#!/usr/bin/env bash
# docs/cli.md lists every verb as `berth help` does, and the tables of each verb have just the options of its --help.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"

verbs() { "$BERTH_BIN" help | awk '/^  [a-z]+  +[a-z]/ && $1 != "help" && !seen[$1]++ { sub(/^ +/, ""); sub(/  +/, ": "); print }'; }

verbs_in() { # FILE: the list at the top of the page, without operands
  awk '/^```/ { inside = !inside; if (++fences == 2) exit; next }
       inside && /^berth [a-z]+  / { verb = $2; sub(/^berth [a-z]+ +(\[MODEL\]|MODEL|BUFFERS\.csv|FILE)? +/, ""); print verb ": " $0 }' "$1"
}

options() { # VERB
  "$BERTH_BIN" "$1" --help | grep -oE '^  (-[a-z], )?--[a-z0-9-]+' | tr -d ' ' | tr ',' '\n' | grep -vxE -- '-h|--help' | sort -u
}

options_in() { # FILE VERB: in the first column of the tables in the verb's section
  awk -v verb="$2" '/^## / { inside = $2 == verb } inside && /^\| `-/ { print }' "$1" |
    sed 's/\\|/ /g' | cut -d'|' -f2 | grep -oE '`-[^ `=]+' | tr -d '`' | sort -u
}

differences() { # FILE
  diff <(verbs) <(verbs_in "$1") | sed 's/^/verbs: /' | grep '[<>]'
  local verb
  for verb in $(verbs | cut -d: -f1); do
    grep -qx "## $verb" "$1" || echo "$verb: has no section"
    diff <(options "$verb") <(options_in "$1" "$verb") | sed -n "s/^< /$verb: only in --help: /p; s/^> /$verb: only in the page: /p"
  done
}

page=$BERTH_SRC/docs/cli.md
if [ "$(verbs | wc -l)" -lt 5 ] || [ "$(options plan | wc -l)" -lt 20 ]; then
  not_ok "the help can be read" "$(verbs) $(options plan)"
fi
found=$(differences "$page")
if [ -z "$found" ]; then ok "docs/cli.md has the verbs and options of --help"; else not_ok "docs/cli.md has the verbs and options of --help" "$found"; fi

# The check itself must be able to find something.
other=$(mktemp)
trap 'rm -f "$other"' EXIT
sed -e '/^| `--seed N` /d' -e 's/^| `--repack`/| `--repacked`/' -e '/^berth embed/d' "$page" >"$other"
found=$(differences "$other")
for what in 'verbs: < embed' 'pack: only in --help: --seed' 'pack: only in --help: --repack' 'pack: only in the page: --repacked'; do
  case $found in *"$what"*) ok "found: $what" ;; *) not_ok "found: $what" "$found" ;; esac
done
tap_done
