# Sourced by scripts/check-slow.sh, from the repository's root: the vocabularies of llama.cpp with their test vectors
# (models/ggml-vocab-*.gguf, .inp, .out), from a package with its sources on npm. They stay under build/vocabs.
. scripts/npm.sh
vocab_reason= # why there are none

vocab_find() { # sets BERTH_TEST_VOCABS where they can be had, or vocab_reason
  local package=@milk2025/llama-cpp-source folder=build/vocabs archive
  [ -z "${BERTH_TEST_VOCABS-}" ] || return 0
  npm_package $package $folder || { vocab_reason=$npm_reason; return 1; }
  archive=$(ls $folder/node_modules/$package/llama.cpp-*.tar.gz)
  if [ ! -e $folder/models/.complete ]; then
    rm -rf $folder/models
    mkdir -p $folder/models
    tar -xzf "$archive" -C $folder/models --strip-components=2 --wildcards '*/models/ggml-vocab-*' ||
      { vocab_reason="$archive cannot be unpacked"; return 1; }
    touch $folder/models/.complete
  fi
  export BERTH_TEST_VOCABS=$PWD/$folder/models
}
