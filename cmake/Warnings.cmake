# The warnings that all code in this repository compiles under.
add_library(sp3_warnings INTERFACE)
target_compile_options(sp3_warnings INTERFACE
  -Wall
  -Wextra
  -Wno-missing-field-initializers  # {.path = p} means the rest to keep its defaults
  -Wshadow
  -Wconversion  # silent narrowing of an offset or a length corrupts a pool
  -Wold-style-cast
  -Wcast-qual
  -Wcast-align
  -Wnon-virtual-dtor
  -Woverloaded-virtual
  -Wimplicit-fallthrough
  -Wundef)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(sp3_warnings INTERFACE
    -Wduplicated-cond
    -Wlogical-op)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 reports std::string's own copies (GCC bug 105651).
    target_compile_options(sp3_warnings INTERFACE -Wno-restrict)
  endif()
  if(NOT SP3_SANITIZE STREQUAL "none")
    # The instrumentation defeats the flow analysis behind these; the plain builds have them on.
    target_compile_options(sp3_warnings INTERFACE
      -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds)
  endif()
  if(SP3_SANITIZE STREQUAL "tsan")
    # ThreadSanitizer does not model atomic_thread_fence, and GCC warns at each. A race reported
    # between accesses that only a fence orders needs a judgement by hand.
    target_compile_options(sp3_warnings INTERFACE -Wno-tsan)
  endif()
endif()

if(SP3_WERROR)
  target_compile_options(sp3_warnings INTERFACE -Werror)
endif()
