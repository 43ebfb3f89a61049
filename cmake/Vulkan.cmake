# The device "vulkan": built where its headers are (Debian: libvulkan-dev libvulkan-volk-dev libshaderc-dev), linked to
# nothing. The loader, the drivers and shaderc are looked for when the program runs.
option(BERTH_VULKAN "Build the device vulkan where the headers of Vulkan, volk and shaderc are found" ON)
if(BERTH_VULKAN)
  find_path(BERTH_VULKAN_INCLUDE vulkan/vulkan_core.h)
  find_path(BERTH_VOLK_INCLUDE volk.h)
  find_path(BERTH_SHADERC_INCLUDE shaderc/shaderc.h)
  mark_as_advanced(BERTH_VULKAN_INCLUDE BERTH_VOLK_INCLUDE BERTH_SHADERC_INCLUDE)
endif()

get_target_property(sources berth_objects SOURCES)
if(BERTH_VULKAN AND BERTH_VULKAN_INCLUDE AND BERTH_VOLK_INCLUDE AND BERTH_SHADERC_INCLUDE)
  list(FILTER sources EXCLUDE REGEX "/src/device/vulkan/loader\\.c$")
  target_compile_definitions(berth_options INTERFACE BERTH__HAS_VULKAN)
  target_include_directories(berth_options SYSTEM INTERFACE ${BERTH_VULKAN_INCLUDE} ${BERTH_SHADERC_INCLUDE})

  # volk defines every function of Vulkan as a variable; in a static library those names would stand in the way of
  # programs that link to Vulkan themselves. All but ours become local.
  add_library(berth_volk OBJECT src/device/vulkan/loader.c)
  set_target_properties(berth_volk PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(berth_volk PRIVATE include src)
  target_include_directories(berth_volk SYSTEM PRIVATE ${BERTH_VULKAN_INCLUDE} ${BERTH_VOLK_INCLUDE})
  target_compile_definitions(berth_volk PRIVATE _GNU_SOURCE)
  target_compile_options(berth_volk PRIVATE -w)
  if(CMAKE_OBJCOPY)
    set(volk_object ${PROJECT_BINARY_DIR}/volk.o)
    add_custom_command(
      OUTPUT ${volk_object}
      COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=berth__vulkan_loader $<TARGET_OBJECTS:berth_volk> ${volk_object}
      DEPENDS berth_volk $<TARGET_OBJECTS:berth_volk>
      COMMENT "Hiding the names of volk"
      VERBATIM)
    add_custom_target(berth_volk_object DEPENDS ${volk_object})
    set_source_files_properties(${volk_object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    list(APPEND kernel_objects ${volk_object})
  else()
    list(APPEND kernel_objects $<TARGET_OBJECTS:berth_volk>)
  endif()
else()
  message(STATUS "The device vulkan is not built: it needs the headers of Vulkan, volk and shaderc")
  list(FILTER sources EXCLUDE REGEX "/src/device/vulkan/")
endif()
set_target_properties(berth_objects PROPERTIES SOURCES "${sources}")
