# Every tests/<area>/test_<name>.c is a program of its own, and a test for ctest. They may look inside the library.
# Other C files of an area are a library of its tests; tests/support is one of all.
find_path(CMOCKA_INCLUDE cmocka.h)
find_library(CMOCKA_LIBRARY cmocka)
mark_as_advanced(CMOCKA_INCLUDE CMOCKA_LIBRARY)
if(NOT CMOCKA_INCLUDE OR NOT CMOCKA_LIBRARY)
  message(FATAL_ERROR "The tests need cmocka (Debian: libcmocka-dev). scripts/install-deps.sh check installs it.")
endif()

# What tests are linked with. A program under a sanitizer has all of the library in it, 46 MB, and there are many: there
# they share one copy, whose inner names can be seen (CMakeLists.txt). The others have what users have.
set(tested berth_static)
if(BERTH_SANITIZE AND NOT BERTH_FUZZ)
  set(tested berth)
endif()

file(GLOB support_sources CONFIGURE_DEPENDS tests/support/*.c)
add_library(berth_test_support STATIC ${support_sources})
target_include_directories(berth_test_support PUBLIC tests/support tests src ${CMOCKA_INCLUDE})
target_link_libraries(berth_test_support PUBLIC ${tested} berth_options Threads::Threads ${CMOCKA_LIBRARY})
# Tests are compiled for the sake of their own time, not of the library's. Through -fPIC they see the shared copy's data
# where it is; otherwise the linker would make a copy that the sanitizer does not know.
target_compile_options(berth_test_support PUBLIC -O1 -fPIC)
if(BERTH_LIBM)
  target_link_libraries(berth_test_support PUBLIC m)
endif()
find_program(BERTH_GOLD ld.gold) # part of binutils; links in a third of the time, and there are many test programs
mark_as_advanced(BERTH_GOLD)
if(BERTH_GOLD)
  target_link_options(berth_test_support PUBLIC -fuse-ld=gold)
endif()
if(TARGET berth_shaderc) # opened at run time; a sanitizer stands between, and looks along the old kind of path alone
  target_link_options(berth_test_support PUBLIC -Wl,--disable-new-dtags,-rpath,$<TARGET_FILE_DIR:berth_shaderc>)
  add_dependencies(berth_test_support berth_shaderc)
endif()

# A library in the place of NVIDIA's driver and compiler, for the device cuda (tests/device/fake_cuda/fake.h).
file(GLOB fake_cuda_sources CONFIGURE_DEPENDS tests/device/fake_cuda/*.c)
add_library(fake_cuda MODULE ${fake_cuda_sources})
berth_embed(fake_cuda ${PROJECT_SOURCE_DIR}/tests/device/fake_cuda/shim.h fake_cuda_shim)
berth_embed(fake_cuda ${PROJECT_SOURCE_DIR}/tests/device/fake_cuda/shim_metal.h fake_metal_shim)
set_target_properties(fake_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
target_include_directories(fake_cuda PRIVATE src tests/device/fake_cuda)
target_compile_definitions(fake_cuda PRIVATE _GNU_SOURCE)
target_compile_options(fake_cuda PRIVATE -O1 -Wall -Wextra)
target_link_libraries(fake_cuda PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
add_dependencies(berth_test_support fake_cuda)

file(GLOB area_sources CONFIGURE_DEPENDS tests/*/*.c)
list(FILTER area_sources EXCLUDE REGEX "/(support/[^/]*|fuzz/[^/]*|test_[^/]*)$")
foreach(source ${area_sources})
  cmake_path(GET source PARENT_PATH folder)
  cmake_path(GET folder FILENAME area)
  if(NOT TARGET berth_test_${area})
    add_library(berth_test_${area} STATIC)
    target_link_libraries(berth_test_${area} PUBLIC berth_test_support)
  endif()
  target_sources(berth_test_${area} PRIVATE ${source})
endforeach()

file(GLOB test_sources CONFIGURE_DEPENDS tests/*/test_*.c)
foreach(source ${test_sources})
  cmake_path(GET source STEM name)
  cmake_path(GET source PARENT_PATH folder)
  cmake_path(GET folder FILENAME area)
  set(target ${area}_${name})
  add_executable(${target} ${source})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/${area})
  if(TARGET berth_test_${area})
    target_link_libraries(${target} PRIVATE berth_test_${area})
  endif()
  target_link_libraries(${target} PRIVATE berth_test_support)
  add_test(NAME ${area}/${name} COMMAND ${target} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${area}/${name} PROPERTIES TIMEOUT 300
                       ENVIRONMENT "BERTH_SRC=${PROJECT_SOURCE_DIR};BERTH_BUILD=${PROJECT_BINARY_DIR};BERTH_CACHE_DIR=${PROJECT_BINARY_DIR}/cache")
endforeach()
# What several threads do at once: all that the thread sanitizer's build makes (the preset "tsan").
file(GLOB thread_sources CONFIGURE_DEPENDS tests/threads/test_*.c)
add_custom_target(thread_tests DEPENDS base_test_thread)
foreach(source ${thread_sources})
  cmake_path(GET source STEM name)
  add_dependencies(thread_tests threads_${name})
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
  target_link_libraries(${name} PRIVATE ${tested} berth_options)
  add_test(NAME fuzz/${corpus} COMMAND ${name} tests/fuzz/corpus/${corpus} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endforeach()

# Every examples/<name>.c is a program that uses the public header alone; tests/examples runs them.
file(GLOB example_sources CONFIGURE_DEPENDS examples/*.c)
foreach(source ${example_sources})
  cmake_path(GET source STEM name)
  add_executable(example_${name} ${source})
  set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  target_include_directories(example_${name} PRIVATE include)
  target_link_libraries(example_${name} PRIVATE ${tested} berth_options Threads::Threads)
  if(BERTH_LIBM)
    target_link_libraries(example_${name} PRIVATE m)
  endif()
  add_test(NAME examples/${name} COMMAND example_${name})
endforeach()
