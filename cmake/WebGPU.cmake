# The device "webgpu": needs nothing to be built, and is linked to nothing. An implementation of WebGPU (Dawn,
# wgpu-native) is looked for when the program runs; in a browser it is the browser's.
option(BERTH_WEBGPU "Build the device webgpu" ON)
if(BERTH_WEBGPU)
  target_compile_definitions(berth_options INTERFACE BERTH__HAS_WEBGPU)
else()
  get_target_property(sources berth_objects SOURCES)
  list(FILTER sources EXCLUDE REGEX "/src/device/webgpu/")
  set_target_properties(berth_objects PROPERTIES SOURCES "${sources}")
endif()
