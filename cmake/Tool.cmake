# The command line program, with the model that ships inside it. It uses the public header alone.
file(GLOB tool_sources CONFIGURE_DEPENDS tools/berth/*.c)
if(NOT tool_sources)
  return()
endif()
add_executable(berth_tool ${tool_sources})
set_target_properties(berth_tool PROPERTIES OUTPUT_NAME berth)
target_link_libraries(berth_tool PRIVATE berth_static berth_options Threads::Threads)
option(BERTH_STATIC "The program needs no shared library (scripts/dist.sh)" OFF)
if(BERTH_STATIC)
  target_link_options(berth_tool PRIVATE -static)
endif()
# Functions of shared libraries are looked up when it starts, not one by one: the tables for that are not needed later, and
# `berth generate` gives their pages back.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT BERTH_STATIC)
  target_link_options(berth_tool PRIVATE -Wl,-z,relro,-z,now)
endif()
# It measures what multiply-adds can reach, which takes the instruction that does both.
set_source_files_properties(tools/berth/peak.c PROPERTIES COMPILE_OPTIONS -ffp-contract=fast)

set(digits ${PROJECT_SOURCE_DIR}/examples/digits)
berth_embed(berth_tool ${digits}/digits.berth berth_digits_graph)
berth_embed(berth_tool ${digits}/digits.safetensors berth_digits_weights)
berth_embed(berth_tool ${digits}/samples.npy berth_digits_samples)
berth_embed(berth_tool ${digits}/samples_labels.npy berth_digits_labels)
install(TARGETS berth_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET berth_shaderc) # which it opens at run time
  add_dependencies(berth_tool berth_shaderc)
endif()
