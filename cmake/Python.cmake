# The Python extension: one module for CPython 3.11 and all that follow (the limited API), beside the package's files in
# build/python, where PYTHONPATH finds it. python/build_backend.py makes a wheel of it.
set(BERTH_PYTHON "" CACHE STRING "Build the Python extension: ON, OFF, or AUTO (where Python's headers are)")
set(python_wanted "${BERTH_PYTHON}")
if("${python_wanted}" STREQUAL "" AND BERTH_TESTS)
  set(python_wanted AUTO)
endif()
if(NOT python_wanted)
  return()
endif()
# The system's, which has the system's numpy.
find_program(BERTH_PYTHON_EXECUTABLE python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(BERTH_PYTHON_EXECUTABLE python3)
if(BERTH_PYTHON_EXECUTABLE)
  execute_process(COMMAND ${BERTH_PYTHON_EXECUTABLE} -c
                  "import sys, sysconfig; print(sysconfig.get_paths()['include'] if sys.version_info >= (3, 11) else '')"
                  OUTPUT_VARIABLE python_include OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT python_include OR NOT EXISTS ${python_include}/Python.h)
  if(python_wanted STREQUAL AUTO)
    message(STATUS "No headers of Python 3.11 or later: the extension is left out (Debian: python3-dev)")
    return()
  endif()
  message(FATAL_ERROR "The Python extension needs the headers of Python 3.11 or later (Debian: python3-dev).")
endif()

file(GLOB python_sources CONFIGURE_DEPENDS python/src/*.c)
set(python_package ${PROJECT_BINARY_DIR}/python/berth)
add_library(berth_python MODULE ${python_sources})
set_target_properties(berth_python PROPERTIES PREFIX "" OUTPUT_NAME _berth SUFFIX .abi3.so
                      LIBRARY_OUTPUT_DIRECTORY ${python_package} C_VISIBILITY_PRESET hidden)
target_compile_definitions(berth_python PRIVATE Py_LIMITED_API=0x030B0000)
target_include_directories(berth_python PRIVATE include)
target_include_directories(berth_python SYSTEM PRIVATE ${python_include})
if(BERTH_SANITIZE) # as the tests: one copy of the library, which is large
  target_link_libraries(berth_python PRIVATE berth berth_options)
else()
  target_link_libraries(berth_python PRIVATE berth_static berth_options Threads::Threads)
  target_link_options(berth_python PRIVATE -Wl,--exclude-libs,ALL) # nobody is to see the library in it
endif()
# The rest of the package beside it.
file(GLOB python_files CONFIGURE_DEPENDS python/berth/*.py python/berth/*.pyi python/berth/py.typed)
file(MAKE_DIRECTORY ${python_package})
foreach(file ${python_files})
  cmake_path(GET file FILENAME name)
  file(CREATE_LINK ${file} ${python_package}/${name} SYMBOLIC)
endforeach()
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/berth/capi ${python_package}/capi SYMBOLIC)
