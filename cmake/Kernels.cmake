# The fast kernels of the CPU: every file of src/device/cpu/kernels is compiled once for each instruction set.
include(CheckCCompilerFlag)
include(CheckCSourceRuns)
file(GLOB kernel_sources CONFIGURE_DEPENDS src/device/cpu/kernels/*.c)
if(is_wasm) # a page waits for its module: what networks in pages hardly have is left to the reference kernels
  list(FILTER kernel_sources EXCLUDE REGEX
       "/(conv_transpose_cells|conv_wide|deform_conv|loops_math|matmul_wide|random|resize_any|roi_align|softmax_f64|wide)\\.c$")
endif()

# Files that define a table of kernels, in the order of their names: where two tables have kernels of one op, the first
# that takes a call gets it.
set(kernel_tables "")
foreach(source ${kernel_sources})
  cmake_path(GET source STEM name)
  file(STRINGS ${source} table REGEX "BERTH__PER_ISA\\(berth__kernels_${name}\\)\\[\\]")
  if(table)
    string(APPEND kernel_tables "BERTH__TABLE(${name})\n")
  endif()
endforeach()
# What takes whatever is left comes last.
string(REPLACE "BERTH__TABLE(plain)\n" "" kernel_tables "${kernel_tables}")
string(APPEND kernel_tables "BERTH__TABLE(plain)\n")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${kernel_sources})
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/kernel_tables/kernel_tables.def CONTENT "${kernel_tables}" @ONLY)

# Systems map 64 kB of code around a page that is run: what language models run for every token is linked side by side,
# small files first.
set(token_kernels attention elementwise norm plain product product_blocks product_narrow rope attention_row blocks_row
    chain_run gemm halves lines chain_steps gemm_tile cast loops)
list(TRANSFORM token_kernels PREPEND ${PROJECT_SOURCE_DIR}/src/device/cpu/kernels/)
list(TRANSFORM token_kernels APPEND .c)
list(REMOVE_ITEM kernel_sources ${token_kernels})
list(PREPEND kernel_sources ${token_kernels})

# What quantised models are made of gives the same bytes on every instruction set (docs/ops.md): a product and a sum
# are rounded apart there, as in the reference kernels; so are resized integers and samples (resize_any, grid_sample,
# roi_align), and the arguments of steep functions of f64 (loops_math). resize gives the same bits on every instruction
# set. non_max_suppression keeps the boxes that those keep. Elsewhere compilers may make one multiply-add of them.
foreach(name chain_run chain_steps elementwise gemm_i8 grid_sample loops_math non_max_suppression pool qconv_last
        qdepth_pairs qdepthwise qproduct quant resize resize_any roi_align unpack)
  set_source_files_properties(src/device/cpu/kernels/${name}.c PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
endforeach()

function(berth_kernels isa)
  add_library(berth_kernels_${isa} OBJECT ${kernel_sources})
  set_target_properties(berth_kernels_${isa} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(berth_kernels_${isa} PRIVATE include src ${PROJECT_BINARY_DIR}/kernel_tables)
  target_compile_definitions(berth_kernels_${isa} PRIVATE BERTH__ISA=${isa})
  target_compile_options(berth_kernels_${isa} PRIVATE -fno-math-errno -fno-trapping-math -ffp-contract=fast ${ARGN})
  target_link_libraries(berth_kernels_${isa} PRIVATE berth_options)
  if(BERTH_SANITIZE MATCHES address AND CMAKE_C_COMPILER_ID STREQUAL GNU)
    # gcc keeps the variables of functions in frames for this check that are not aligned for whole vectors.
    target_compile_options(berth_kernels_${isa} PRIVATE --param=asan-use-after-return=0)
  endif()
  set(kernel_objects ${kernel_objects} $<TARGET_OBJECTS:berth_kernels_${isa}> PARENT_SCOPE)
endfunction()

option(BERTH_PORTABLE "Build no kernels but those that every CPU can run" OFF)
# For builds that are tested where they are made. OMIT: kernels that this CPU cannot run are left out, as sanitizers make
# them slow to compile. PLAIN: they are compiled, for the sake of warnings, and not optimised.
set(BERTH_KERNELS_OF_OTHER_CPUS "" CACHE STRING "Kernels that this CPU cannot run: OMIT or PLAIN; otherwise as the others")
berth_kernels(portable)
if(NOT BERTH_PORTABLE AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  check_c_compiler_flag("-mavx2 -mfma -mf16c" BERTH_HAS_AVX2)
  check_c_compiler_flag("-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni" BERTH_HAS_AVX512)
  set(avx512_optimised)
  if(BERTH_KERNELS_OF_OTHER_CPUS)
    check_c_source_runs("int main(void) { return !__builtin_cpu_supports(\"avx512vnni\"); }" BERTH_CPU_IS_AVX512)
    if(NOT BERTH_CPU_IS_AVX512 AND BERTH_KERNELS_OF_OTHER_CPUS STREQUAL OMIT)
      set(BERTH_HAS_AVX512 OFF)
    elseif(NOT BERTH_CPU_IS_AVX512)
      set(avx512_optimised -O0)
    endif()
  endif()
  if(BERTH_HAS_AVX2)
    berth_kernels(avx2 -mavx2 -mfma -mf16c)
    target_compile_definitions(berth_objects PRIVATE BERTH__HAS_AVX2)
  endif()
  if(BERTH_HAS_AVX512)
    berth_kernels(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mfma -mf16c
                  -mprefer-vector-width=512 ${avx512_optimised})
    target_compile_definitions(berth_objects PRIVATE BERTH__HAS_AVX512)
  endif()
endif()
