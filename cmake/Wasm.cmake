# The WebAssembly module: the library and web/wasm, which calls it. BERTH_WASM_THREADS makes the one with threads, whose
# memory is shared and comes from the host.
option(BERTH_WASM_THREADS "Use threads, in a memory that is shared" OFF)
set(wasm ${PROJECT_SOURCE_DIR}/web/wasm)
file(GLOB module_sources CONFIGURE_DEPENDS web/wasm/*.c web/wasm/sys/*.c)

target_include_directories(berth_options BEFORE INTERFACE ${wasm}/sys)
target_compile_options(berth_options INTERFACE -msimd128 -ffunction-sections -fdata-sections)
if(BERTH_WASM_THREADS)
  target_compile_options(berth_options INTERFACE -matomics -mbulk-memory -ftls-model=local-exec)
  # Debian's C library knows nothing of atomics; only the caller's thread may use its parts that would need them.
  set(memory -Wl,--shared-memory,--no-check-features,--import-memory
      -Wl,--export=__stack_pointer,--export=__wasm_init_tls)
  set(name berth-threads)
else()
  set(memory)
  set(name berth)
endif()

add_executable(berth_wasm $<TARGET_OBJECTS:berth_objects> ${kernel_objects} ${module_sources}
               tools/berth/generation_plan.c tools/berth/json.c tools/berth/utf8.c)
set_target_properties(berth_wasm PROPERTIES OUTPUT_NAME ${name} SUFFIX .wasm)
target_include_directories(berth_wasm PRIVATE include tools/berth)
target_link_libraries(berth_wasm PRIVATE berth_options m)
# The stack comes first, so that one that is too deep ends at an address that there is not, and not in data.
target_link_options(berth_wasm PRIVATE -mexec-model=reactor -Wl,--gc-sections,--strip-all
                    -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign,--wrap=free
                    -Wl,--stack-first,-z,stack-size=1048576,--initial-memory=4194304,--max-memory=4294967296 ${memory})
set(digits ${PROJECT_SOURCE_DIR}/examples/digits)
berth_embed(berth_wasm ${digits}/digits.berth berth_digits_graph)
berth_embed(berth_wasm ${digits}/digits.safetensors berth_digits_weights)
