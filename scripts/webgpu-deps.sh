# Sourced by the scripts that test the device "webgpu", from the repository's root. Where BERTH_WEBGPU_LIBRARY does not
# name an implementation, Dawn comes from npm and stays under build/webgpu. Where VK_ICD_FILENAMES does not name a
# driver, it is the SwiftShader of Debian's chromium, if that is installed.
. scripts/npm.sh
webgpu=build/webgpu
webgpu_library=${BERTH_WEBGPU_LIBRARY-}
webgpu_driver=${VK_ICD_FILENAMES-}
webgpu_reason= # why there is no library

webgpu_package() { # NAME
  [ "$(uname -sm)" = "Linux x86_64" ] || { webgpu_reason="there is no $1 for this machine"; return 1; }
  npm_package "$1" $webgpu || { webgpu_reason=$npm_reason; return 1; }
}

webgpu_find() { # sets webgpu_library and webgpu_driver, or webgpu_reason
  local swiftshader=/usr/lib/chromium/vk_swiftshader_icd.json
  if [ -z "$webgpu_driver" ] && [ -f $swiftshader ]; then webgpu_driver=$swiftshader; fi
  [ -z "$webgpu_library" ] || return 0
  webgpu_package bun-webgpu-linux-x64 || return
  webgpu_library=$PWD/$webgpu/node_modules/bun-webgpu-linux-x64/libwebgpu_wrapper.so
}

# A second implementation, for the tests that take it: doe-gpu, which runs on the driver that is the system's own.
webgpu_find_second() { # sets BERTH_WEBGPU_SECOND where it can be had, or webgpu_reason
  [ -z "${BERTH_WEBGPU_SECOND-}" ] || return 0
  webgpu_package doe-gpu-linux-x64 || return
  export BERTH_WEBGPU_SECOND=$PWD/$webgpu/node_modules/doe-gpu-linux-x64/bin/libwebgpu_doe.so
}
