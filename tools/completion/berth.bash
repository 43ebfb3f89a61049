# Completion of berth's verbs, options and files, for bash. What there is, the program says itself, so that this file
# fits every version. In zsh: autoload bashcompinit && bashcompinit, then source it.
_berth() {
  local berth=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]} words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="$("$berth" help 2>/dev/null | awk '/^  [a-z]+  / { print $1 }') --help --version"
  elif [ "${COMP_WORDS[1]}" = help ]; then
    words=$("$berth" help 2>/dev/null | awk '/^  [a-z]+  / { print $1 }')
  elif [ "$last" = --device ]; then
    words=$("$berth" devices --json 2>/dev/null | grep -o '"name": *"[^"]*"' | sed 's/.*"\(.*\)"/\1/')
  elif [[ $word == -* ]]; then
    words=$("$berth" help "${COMP_WORDS[1]}" 2>/dev/null | awk '/^  -/ { for (i = 1; i <= 2; i++) if ($i ~ /^-/) { sub(/,$/, "", $i); print $i } }')
  fi
  COMPREPLY=()
  if [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    type compopt >/dev/null 2>&1 && compopt -o filenames 2>/dev/null
  fi
}
complete -F _berth berth
