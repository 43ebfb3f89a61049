# Sourced, from the repository's root, by the scripts that use packages from npm. scripts/npm-packages.sha512 pins the
# version of each and the hash of its archive: `HASH  NAME-VERSION.tgz`, as sha512sum writes it. An archive with another
# hash is never unpacked. Dependencies are not followed (those that are needed are listed too), and no script of a
# package is run. To move to another version: `npm pack NAME@VERSION`, look at it, and put its sha512sum into the list.
npm_list=${BERTH_NPM_LIST:-scripts/npm-packages.sha512}
npm_reason= # why the last package cannot be had
npm_wrong=  # the archives that came with another hash than the one in the list: an error, never a reason to skip

# npm calls the archive of @SCOPE/NAME SCOPE-NAME-VERSION.tgz.
npm_base() { # NAME
  local base=${1#@}
  echo "${base//\//-}"
}

npm_archive() { # NAME: prints `HASH  NAME-VERSION.tgz`
  grep -E "^[0-9a-f]{128}  $(npm_base "$1")-[0-9][^ ]*\.tgz$" "$npm_list"
}

npm_fetch() { # NAME FOLDER: the archive, in FOLDER, with the right hash
  local name=$1 folder=$2 line archive version
  line=$(npm_archive "$name") || { npm_reason="$name is not in $npm_list"; return 1; }
  archive=${line#*  }
  version=${archive#"$(npm_base "$name")"-} version=${version%.tgz}
  (cd "$folder" 2>/dev/null && echo "$line" | sha512sum --check --status 2>/dev/null) && return # npm_packages got it
  command -v npm >/dev/null || { npm_reason="npm is not installed"; return 1; }
  echo "== getting $name $version from npm, into $folder" >&2
  mkdir -p "$folder"
  (cd "$folder" && npm pack --silent --ignore-scripts --prefer-offline "$name@$version" >/dev/null 2>&1 </dev/null) ||
    { npm_reason="npm could not get $name $version"; return 1; }
  if ! (cd "$folder" && echo "$line" | sha512sum --check --status 2>/dev/null); then
    rm -f "$folder/$archive"
    npm_reason="$archive from npm does not have the hash that $npm_list pins; it was not unpacked"
    npm_wrong+="${npm_wrong:+, }$archive"
    return 1
  fi
}

# A package that is there already is used when it came from the archive that the list pins today, with or without a
# network. `.sha512` in its folder says which archive that was; it is written last.
npm_package() { # NAME FOLDER: FOLDER/node_modules/NAME is what the list pins; or sets npm_reason, and npm_wrong
  local name=$1 folder=$2 line archive to=$2/node_modules/$1
  line=$(npm_archive "$name") || { npm_reason="$name is not in $npm_list"; return 1; }
  archive=${line#*  }
  [ "$(cat "$to/.sha512" 2>/dev/null)" = "$line" ] && return
  npm_fetch "$name" "$folder" || return
  rm -rf "$to"
  mkdir -p "$to"
  tar -xzf "$folder/$archive" -C "$to" --strip-components=1 || { npm_reason="$archive cannot be unpacked"; return 1; }
  rm -f "$folder/$archive"
  echo "$line" >"$to/.sha512"
}

# npm takes as long for one package as for many: those that are missing are fetched by one call.
npm_packages() { # FOLDER NAME...: npm_package for each
  local folder=$1 name line archive missing=()
  shift
  for name in "$@"; do
    line=$(npm_archive "$name") || continue
    archive=${line#*  }
    archive=${archive#"$(npm_base "$name")"-}
    [ "$(cat "$folder/node_modules/$name/.sha512" 2>/dev/null)" = "$line" ] || missing+=("$name@${archive%.tgz}")
  done
  if [ ${#missing[@]} -gt 1 ] && command -v npm >/dev/null; then
    echo "== getting ${#missing[@]} packages from npm, into $folder" >&2
    mkdir -p "$folder"
    (cd "$folder" && npm pack --silent --ignore-scripts --prefer-offline "${missing[@]}" >/dev/null 2>&1 </dev/null)
  fi
  for name in "$@"; do npm_package "$name" "$folder" || return; done
}
