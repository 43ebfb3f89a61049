#!/usr/bin/env bash
# Links between the pages of the repository lead to files and headings that exist.
set -uo pipefail
. "$BERTH_SRC/tests/support/tap.sh"
cd "$BERTH_SRC" || exit 1

# The names by which a page's headings are linked: lower case, without punctuation, with hyphens for spaces.
anchors() { # page
  awk '/^```/ { code = !code } !code && /^#+ /' "$1" |
    sed -E 's/^#+ //; s/[[:upper:]]/\L&/g; s/[^[:alnum:] _-]//g; s/ /-/g'
}

# Targets of links in brackets and parentheses, outside of blocks of code: not those with a scheme.
links() { # page
  awk '/^```/ { code = !code } !code' "$1" | sed 's/`[^`]*`//g' |
    grep -oE '\]\([^() ]+\)' | sed -E 's/^\]\(//; s/\)$//' | grep -vE '^[a-z]+:' | LC_ALL=C sort -u
}

all_lead_somewhere() { # page
  local page=$1 link file anchor wrong=0
  while read -r link; do
    file=${link%%#*} anchor=
    [[ $link == *'#'* ]] && anchor=${link#*#}
    [ -n "$file" ] && file=$(dirname "$page")/$file || file=$page
    if [ ! -e "$file" ]; then
      echo "$page: $link: no such file"
      wrong=1
    elif [ -n "$anchor" ] && ! anchors "$file" | grep -qxF -- "$anchor"; then
      echo "$page: $link: no such heading"
      wrong=1
    fi
  done < <(links "$page")
  return "$wrong"
}

pages=$(find . -name '*.md' ! -path './build/*' ! -path '*/node_modules/*' | sed 's|^\./||' | LC_ALL=C sort)
check "links are found" grep -q . <(for page in $pages; do links "$page"; done)
for page in $pages; do
  [ -z "$(links "$page")" ] || check "links in $page" all_lead_somewhere "$page"
done

wrong=$(mktemp -d)
trap 'rm -rf "$wrong"' EXIT
printf '# A page\n\n[a](#a-page) [b](#no-heading)\n' >"$wrong/page.md"
check "the rule finds a missing heading" grep -qx "$wrong/page.md: #no-heading: no such heading" <(all_lead_somewhere "$wrong/page.md")
printf '# A page\n\n[a](#a-page) [b](none.md)\n' >"$wrong/page.md"
check "the rule finds a missing file" grep -qx "$wrong/page.md: none.md: no such file" <(all_lead_somewhere "$wrong/page.md")
tap_done
