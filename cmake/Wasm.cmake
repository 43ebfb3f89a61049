# The WebAssembly modules: the library and web/wasm, which calls it. berth-threads.wasm uses threads, in a shared memory
# that comes from the host; berth.wasm is for hosts that have none. The library is compiled once: its atomic instructions
# are valid in a memory that is not shared, too.
set(wasm ${PROJECT_SOURCE_DIR}/web/wasm)
file(GLOB module_sources CONFIGURE_DEPENDS web/wasm/*.c web/wasm/sys/*.c)

target_include_directories(berth_options BEFORE INTERFACE ${wasm}/sys)
target_compile_options(berth_options INTERFACE -msimd128 -matomics -mbulk-memory -ftls-model=local-exec
                       -ffunction-sections -fdata-sections)
# The module is fetched before anything can be shown: what is no kernel is compiled to be small, and so are kernels that
# are one short loop for each of many types, or that pages rarely run.
target_compile_options(berth_objects PRIVATE -Os)
foreach(name arg_any attention_grad blocks_exact cast conv_transpose_each cumsum dft grid_sample index
             loops matmul_small norm_grad pack_blocks pad pool_places reduce_int top_k trees)
  set_property(SOURCE src/device/cpu/kernels/${name}.c APPEND PROPERTY COMPILE_OPTIONS -Os)
endforeach()

set(digits ${PROJECT_SOURCE_DIR}/examples/digits)
add_library(berth_digits OBJECT)
target_link_libraries(berth_digits PRIVATE berth_options)
berth_embed(berth_digits ${digits}/digits.berth berth_digits_graph)
berth_embed(berth_digits ${digits}/digits.safetensors berth_digits_weights)

function(berth_module target name)
  add_executable(${target} $<TARGET_OBJECTS:berth_objects> ${kernel_objects} $<TARGET_OBJECTS:berth_digits> ${module_sources}
                 tools/berth/elements.c tools/berth/generation_plan.c tools/berth/json.c tools/berth/least.c tools/berth/loss.c
                 tools/berth/ranges.c tools/berth/utf8.c tools/berth/work.c)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} SUFFIX .wasm)
  target_include_directories(${target} PRIVATE include tools/berth)
  target_link_libraries(${target} PRIVATE berth_options m)
  # The stack comes first, so that one that is too deep ends at an address that there is not, and not in data.
  target_link_options(${target} PRIVATE -mexec-model=reactor -Wl,--gc-sections,--strip-all
                      -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign,--wrap=free
                      -Wl,--stack-first,-z,stack-size=1048576,--initial-memory=4194304,--max-memory=4294967296)
endfunction()

berth_module(berth_wasm berth)
berth_module(berth_wasm_threads berth-threads)
target_compile_definitions(berth_wasm_threads PRIVATE BERTH_WEB_THREADS)
# Debian's C library knows nothing of atomics; only the caller's thread may use its parts that would need them.
target_link_options(berth_wasm_threads PRIVATE -Wl,--shared-memory,--no-check-features,--import-memory
                    -Wl,--export=__stack_pointer,--export=__wasm_init_tls)
