# Every bench/<area>/<name>.c is a program of its own: <build>/bench/<area>/<name>.
file(GLOB bench_sources CONFIGURE_DEPENDS bench/*/*.c)
foreach(source ${bench_sources})
  cmake_path(GET source STEM name)
  cmake_path(GET source PARENT_PATH folder)
  cmake_path(GET folder FILENAME area)
  add_executable(bench_${area}_${name} ${source})
  set_target_properties(bench_${area}_${name} PROPERTIES OUTPUT_NAME ${name}
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench/${area})
  target_link_libraries(bench_${area}_${name} PRIVATE berth_static berth_options)
endforeach()
