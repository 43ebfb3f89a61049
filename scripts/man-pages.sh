#!/usr/bin/env bash
# Writes the manual pages, from the same text as --help: berth.1, and berth-VERB.1 for every verb.
#   scripts/man-pages.sh BERTH FOLDER
set -euo pipefail
berth=$1 folder=$2
mkdir -p "$folder"
version=$("$berth" --version | awk '{ print $NF }')

page() { # NAME: the help of a verb, or of the program, on stdin
  awk -v name="$1" -v version="$version" '
    function roff(text) { # what begins a line with a point would be a request
      gsub(/\\/, "\\e", text)
      gsub(/-/, "\\-", text)
      if (text ~ /^[.\x27]/) text = "\\&" text
      return text
    }
    function section(title) { print ".SH " title; part = title; pending = 0 }
    NR == 1 {
      text = $0
      sub(/^[^-]* - /, "", text)
      print ".TH " toupper(name) " 1 \"\" \"berth " version "\" \"berth\""
      section("NAME")
      print name " \\- " roff(text)
      next
    }
    /^usage: / { section("SYNOPSIS"); print ".B " roff(substr($0, 8)); next }
    /^options \(/ { section("OPTIONS"); print "Defaults are in parentheses."; next }
    /^examples:$/ { section("EXAMPLES"); print ".nf"; next }
    /^$/ {
      if (part == "OPTIONS" || part == "SYNOPSIS") pending = 1
      else if (part == "EXAMPLES") print ""
      else if (part == "DESCRIPTION") { if (lines) print ".fi"; lines = 0; print ".PP" }
      next
    }
    pending { pending = 0; section("DESCRIPTION") }
    part == "OPTIONS" && /^  [-]/ {
      at = match(substr($0, 3), /   */)
      print ".TP"
      if (at) {
        print ".B " roff(substr($0, 3, at - 1))
        text = substr($0, 2 + at)
        sub(/^ */, "", text)
        print roff(text)
      } else print ".B " roff(substr($0, 3))
      next
    }
    part == "OPTIONS" { sub(/^ */, ""); print roff($0); next }
    part == "DESCRIPTION" && /^  / { if (!lines) print ".nf"; lines = 1; print roff($0); next } # a table or commands
    { if (lines) { print ".fi"; lines = 0 } print roff($0) }
    END { if (part == "EXAMPLES" || lines) print ".fi" }'
}

verbs=$("$berth" help | awk '/^  [a-z]+  / { print $1 }')
{
  "$berth" help | page berth
  echo '.SH SEE ALSO'
  for verb in $verbs; do [ "$verb" = help ] || echo ".BR berth\\-$verb (1)"; done
} >"$folder/berth.1"
for verb in $verbs; do
  [ "$verb" = help ] && continue
  { "$berth" help "$verb" | page "berth-$verb"; echo '.SH SEE ALSO'; echo '.BR berth (1)'; } >"$folder/berth-$verb.1"
done
