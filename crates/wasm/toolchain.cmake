# Compiles libopus for WebAssembly with the clang and the headers of zig (PyPI: ziglang), which `make wasm` installs.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
file(GLOB INSTALLED ${CMAKE_CURRENT_LIST_DIR}/../../.venv/lib/python3*/site-packages/ziglang)
find_program(ZIG zig HINTS ${INSTALLED} REQUIRED)
set(CMAKE_C_COMPILER ${ZIG})
set(CMAKE_C_COMPILER_FORCED TRUE)
set(CMAKE_C_FLAGS_RELEASE_INIT "-O3 -DNDEBUG")
set(CMAKE_C_FLAGS_MINSIZEREL_INIT "-Os -DNDEBUG")
set(CMAKE_AR ${ZIG})
set(CMAKE_RANLIB ${ZIG})
# Rust's target has no C library, and so no headers: those of WASI declare the same functions. Of two targets the
# last counts. By default zig checks the stack and undefined behaviour with functions of its own.
set(CMAKE_C_COMPILE_OBJECT "<CMAKE_C_COMPILER> cc <DEFINES> <INCLUDES> <FLAGS> -target wasm32-wasi -fno-stack-protector -fno-sanitize=undefined -msimd128 -o <OBJECT> -c <SOURCE>")
set(CMAKE_C_ARCHIVE_CREATE "<CMAKE_AR> ar qc <TARGET> <OBJECTS>")
set(CMAKE_C_ARCHIVE_FINISH "<CMAKE_RANLIB> ranlib <TARGET>")
