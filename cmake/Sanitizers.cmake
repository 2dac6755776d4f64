# SP3_SANITIZE applies to everything in the build: a half-instrumented program gives false reports.
if(SP3_SANITIZE MATCHES "^(asan-ubsan|fuzzer)$")
  add_compile_options(
    -fsanitize=address,undefined
    -fno-sanitize-recover=all  # a finding fails the test instead of scrolling by
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  if(SP3_SANITIZE STREQUAL "fuzzer")
    # What a fuzzer watches; its main function is linked by the targets that want it.
    if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      message(FATAL_ERROR "SP3_SANITIZE is 'fuzzer': want clang++, got ${CMAKE_CXX_COMPILER}")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
elseif(SP3_SANITIZE STREQUAL "tsan")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(NOT SP3_SANITIZE STREQUAL "none")
  message(FATAL_ERROR "SP3_SANITIZE is '${SP3_SANITIZE}'; want none, asan-ubsan, tsan or fuzzer")
endif()
