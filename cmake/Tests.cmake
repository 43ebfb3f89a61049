# Every tests/<area>/test_<name>.c is a program of its own, and a test for ctest. They may look inside the library.
# Other C files of an area are part of each of its tests; tests/support is part of all.
find_path(CMOCKA_INCLUDE cmocka.h)
find_library(CMOCKA_LIBRARY cmocka)
mark_as_advanced(CMOCKA_INCLUDE CMOCKA_LIBRARY)
if(NOT CMOCKA_INCLUDE OR NOT CMOCKA_LIBRARY)
  message(FATAL_ERROR "The tests need cmocka (Debian: libcmocka-dev). scripts/install-deps.sh check installs it.")
endif()

file(GLOB support_sources CONFIGURE_DEPENDS tests/support/*.c)
add_library(berth_test_support STATIC ${support_sources})
target_include_directories(berth_test_support PUBLIC tests/support tests src ${CMOCKA_INCLUDE})
target_link_libraries(berth_test_support PUBLIC berth_static berth_options Threads::Threads ${CMOCKA_LIBRARY})
if(BERTH_LIBM)
  target_link_libraries(berth_test_support PUBLIC m)
endif()
if(TARGET berth_shaderc) # opened at run time; a sanitizer stands between, and looks along the old kind of path alone
  target_link_options(berth_test_support PUBLIC -Wl,--disable-new-dtags,-rpath,$<TARGET_FILE_DIR:berth_shaderc>)
  add_dependencies(berth_test_support berth_shaderc)
endif()

file(GLOB test_sources CONFIGURE_DEPENDS tests/*/test_*.c)
foreach(source ${test_sources})
  cmake_path(GET source STEM name)
  cmake_path(GET source PARENT_PATH folder)
  cmake_path(GET folder FILENAME area)
  set(target ${area}_${name})
  file(GLOB area_sources CONFIGURE_DEPENDS ${folder}/*.c)
  list(FILTER area_sources EXCLUDE REGEX "/test_[^/]*$")
  add_executable(${target} ${source} ${area_sources})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/${area})
  target_link_libraries(${target} PRIVATE berth_test_support)
  add_test(NAME ${area}/${name} COMMAND ${target} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${area}/${name} PROPERTIES TIMEOUT 300
                       ENVIRONMENT "BERTH_SRC=${PROJECT_SOURCE_DIR};BERTH_BUILD=${PROJECT_BINARY_DIR};BERTH_CACHE_DIR=${PROJECT_BINARY_DIR}/cache")
endforeach()
# The rows of bench/kernels, without the program that measures them.
file(GLOB row_sources CONFIGURE_DEPENDS bench/kernels/rows*.c)
target_sources(bench_test_kernel_rows PRIVATE ${row_sources} bench/kernels/call.c)

# A fuzz target searches with clang's libFuzzer (BERTH_FUZZ), and otherwise has a main that replays
# tests/fuzz/corpus/<name>, so that what was once found stays found.
file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
foreach(source ${fuzz_sources})
  cmake_path(GET source STEM name)
  string(REPLACE "fuzz_" "" corpus ${name})
  add_executable(${name} ${source})
  if(BERTH_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE tests/fuzz/replay.c)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/fuzz)
  target_include_directories(${name} PRIVATE tests src)
  target_link_libraries(${name} PRIVATE berth_static berth_options)
  add_test(NAME fuzz/${corpus} COMMAND ${name} tests/fuzz/corpus/${corpus} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endforeach()
