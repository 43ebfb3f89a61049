# Sourced by the scripts that run ONNX Runtime, from the repository's root: its packages come from npm and stay under
# build/ort. Sets $ort; a script calls skip when a thing cannot be had.
. scripts/npm.sh
ort=build/ort

skip() {
  [ -z "$npm_wrong" ] || { echo "${0##*/}: $1" >&2; exit 1; }
  echo "skipped: ${0##*/}: $1"
  exit 0
}

ort_install() { # onnxruntime-node: the library, and its binding for node, which wants onnxruntime-common
  local package
  command -v node >/dev/null || skip "node is not installed"
  for package in onnxruntime-common onnxruntime-node; do npm_package $package $ort || skip "$npm_reason"; done
}

# The headers of its C interface, which no package of ONNX Runtime's own has on npm. The interface only grows, so those
# of an older version serve a newer library. $ORT_INCLUDE names a folder that has them already.
ort_headers() {
  [ -n "${ORT_INCLUDE-}" ] && return
  ORT_INCLUDE=$PWD/$ort/include
  [ -f "$ORT_INCLUDE/onnxruntime_c_api.h" ] && return
  local package=com.github.asus4.onnxruntime archive
  echo "== the C headers of ONNX Runtime are in a package of 150 MB, which is got once" >&2
  npm_fetch $package $ort || skip "$npm_reason; ORT_INCLUDE=FOLDER would name the headers"
  archive=$(npm_archive $package)
  archive=${archive#*  }
  mkdir -p "$ORT_INCLUDE"
  tar -xzf "$ort/$archive" -C "$ORT_INCLUDE" --wildcards --strip-components=7 \
    '*/ios-arm64/onnxruntime.framework/Headers/*.h' || skip "$package has no headers where they were"
  rm "$ort/$archive"
}

ort_library() { # prints where the library is
  local system machine
  system=$(uname -s | tr '[:upper:]' '[:lower:]')
  machine=$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')
  find $ort/node_modules/onnxruntime-node/bin -path "*/$system/$machine/libonnxruntime*" | sort | tail -n 1
}
