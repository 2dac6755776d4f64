# SP3_SANITIZE applies to everything in the build: a half-instrumented program gives false reports.
if(SP3_SANITIZE STREQUAL "asan-ubsan")
  add_compile_options(
    -fsanitize=address,undefined
    -fno-sanitize-recover=all  # a finding fails the test instead of scrolling by
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(SP3_SANITIZE STREQUAL "tsan")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(NOT SP3_SANITIZE STREQUAL "none")
  message(FATAL_ERROR "SP3_SANITIZE is '${SP3_SANITIZE}'; want none, asan-ubsan or tsan")
endif()
