# WebAssembly with the C library of WASI (Debian: clang lld wasi-libc libclang-rt-14-dev-wasm32). See docs/web.md.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
foreach(name clang-14 clang)
  find_program(CMAKE_C_COMPILER ${name})
endforeach()
find_program(CMAKE_AR NAMES llvm-ar-14 llvm-ar)
find_program(CMAKE_RANLIB NAMES llvm-ranlib-14 llvm-ranlib)
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # a program would need a main that nobody has
