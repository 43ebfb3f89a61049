# Sourced by the scripts that run ONNX Runtime, from the repository's root: both packages come from npm and stay under
# build/ort. Sets $ort; a script calls skip when a thing cannot be had.
ort=build/ort

skip() {
  echo "skipped: ${0##*/}: $1"
  exit 0
}

ort_install() { # onnxruntime-node: the library, and its binding for node
  command -v node >/dev/null || skip "node is not installed"
  command -v npm >/dev/null || skip "npm is not installed"
  [ -d $ort/node_modules/onnxruntime-node ] && return
  echo "== installing onnxruntime-node into $ort" >&2
  mkdir -p $ort
  npm install --ignore-scripts --no-audit --no-fund --loglevel=error --prefix $ort onnxruntime-node >&2 ||
    skip "npm could not install onnxruntime-node"
}

# The headers of its C interface, which no package of ONNX Runtime's own has on npm. The interface only grows, so those
# of an older version serve a newer library. $ORT_INCLUDE names a folder that has them already.
ort_headers() {
  [ -n "${ORT_INCLUDE-}" ] && return
  ORT_INCLUDE=$PWD/$ort/include
  [ -f "$ORT_INCLUDE/onnxruntime_c_api.h" ] && return
  local package=com.github.asus4.onnxruntime@0.4.9 archive
  echo "== getting the C headers of ONNX Runtime from $package (150 MB, once)" >&2
  archive=$(cd $ort && npm pack --silent $package) ||
    skip "npm could not get $package; ORT_INCLUDE=FOLDER would name the headers"
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
