# shaderc as a module of ours, where its static archives are found (Debian: libshaderc-dev glslang-dev spirv-tools):
# src/device/vulkan/shaderc/module.c says why. Without it, the device vulkan opens the shared library of the system.
file(RELATIVE_PATH libdir_from_bindir ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set_source_files_properties(src/device/vulkan/shaderc.c PROPERTIES
                            COMPILE_DEFINITIONS BERTH__LIBDIR_FROM_BINDIR="${libdir_from_bindir}")

set(archives)
if(BERTH_VULKAN AND BERTH_SHADERC_INCLUDE)
  foreach(name shaderc_combined glslang MachineIndependent GenericCodeGen OSDependent OGLCompiler HLSL SPIRV
               SPIRV-Tools-opt SPIRV-Tools)
    find_library(BERTH_ARCHIVE_${name} lib${name}.a)
    mark_as_advanced(BERTH_ARCHIVE_${name})
    if(BERTH_ARCHIVE_${name})
      list(APPEND archives ${BERTH_ARCHIVE_${name}}) # those that a newer glslang has merged are no loss
    endif()
  endforeach()
endif()
set(shaderc_libraries -Wl,--start-group ${archives} -Wl,--end-group stdc++ m Threads::Threads)
if(archives AND NOT DEFINED BERTH_LINKS_SHADERC)
  message(STATUS "Looking for a whole shaderc in archives")
  try_compile(BERTH_LINKS_SHADERC ${PROJECT_BINARY_DIR}/shaderc
              SOURCES ${PROJECT_SOURCE_DIR}/src/device/vulkan/shaderc/module.c
              CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${PROJECT_SOURCE_DIR}/src;${BERTH_SHADERC_INCLUDE}"
              COMPILE_DEFINITIONS -fPIC LINK_OPTIONS -shared -Wl,--no-undefined LINK_LIBRARIES ${shaderc_libraries})
  message(STATUS "Looking for a whole shaderc in archives - ${BERTH_LINKS_SHADERC}")
endif()

if(BERTH_LINKS_SHADERC)
  add_library(berth_shaderc MODULE src/device/vulkan/shaderc/module.c)
  target_include_directories(berth_shaderc PRIVATE src)
  target_include_directories(berth_shaderc SYSTEM PRIVATE ${BERTH_SHADERC_INCLUDE})
  target_link_libraries(berth_shaderc PRIVATE ${shaderc_libraries})
  target_link_options(berth_shaderc PRIVATE -Wl,--exclude-libs,ALL -Wl,--no-undefined)
  install(TARGETS berth_shaderc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
