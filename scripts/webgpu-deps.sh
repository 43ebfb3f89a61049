# Sourced by the scripts that test the device "webgpu", from the repository's root. Where BERTH_WEBGPU_LIBRARY does not
# name an implementation, Dawn comes from npm and stays under build/webgpu. Where VK_ICD_FILENAMES does not name a
# driver, it is the SwiftShader of Debian's chromium, if that is installed.
webgpu=build/webgpu
webgpu_package=bun-webgpu-linux-x64
webgpu_version=0.1.7
webgpu_library=${BERTH_WEBGPU_LIBRARY-}
webgpu_driver=${VK_ICD_FILENAMES-}
webgpu_reason= # why there is no library

webgpu_install_dawn() {
  local library=$webgpu/node_modules/$webgpu_package/libwebgpu_wrapper.so
  if [ ! -f $library ]; then
    [ "$(uname -sm)" = "Linux x86_64" ] || { webgpu_reason="there is no $webgpu_package for this machine"; return 1; }
    command -v npm >/dev/null || { webgpu_reason="npm is not installed"; return 1; }
    echo "== installing $webgpu_package into $webgpu" >&2
    mkdir -p $webgpu
    npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error --prefix $webgpu \
      $webgpu_package@$webgpu_version >&2 </dev/null || { webgpu_reason="npm could not install $webgpu_package"; return 1; }
  fi
  webgpu_library=$PWD/$library
}

webgpu_find() { # sets webgpu_library and webgpu_driver, or webgpu_reason
  local swiftshader=/usr/lib/chromium/vk_swiftshader_icd.json
  if [ -z "$webgpu_driver" ] && [ -f $swiftshader ]; then webgpu_driver=$swiftshader; fi
  [ -n "$webgpu_library" ] || webgpu_install_dawn
}

# A second implementation, for the tests that take it: doe-gpu, which runs on the driver that is the system's own.
webgpu_find_second() { # sets BERTH_WEBGPU_SECOND where it can be had
  local package=doe-gpu-linux-x64 version=0.4.7 library
  library=$webgpu/node_modules/$package/bin/libwebgpu_doe.so
  [ -z "${BERTH_WEBGPU_SECOND-}" ] || return 0
  if [ ! -f $library ] && [ "$(uname -sm)" = "Linux x86_64" ] && command -v npm >/dev/null; then
    echo "== installing $package into $webgpu" >&2
    mkdir -p $webgpu
    npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error --prefix $webgpu \
      $package@$version >&2 </dev/null || true
  fi
  if [ -f $library ]; then export BERTH_WEBGPU_SECOND=$PWD/$library; fi
}
