# The device "cuda": needs nothing to be built, and is linked to nothing. NVIDIA's driver and NVRTC are looked for when
# the program runs.
option(BERTH_CUDA "Build the device cuda" ON)
if(BERTH_CUDA AND NOT is_wasm)
  target_compile_definitions(berth_options INTERFACE BERTH__HAS_CUDA)
else()
  get_target_property(sources berth_objects SOURCES)
  list(FILTER sources EXCLUDE REGEX "/src/device/cuda/")
  set_target_properties(berth_objects PROPERTIES SOURCES "${sources}")
endif()
