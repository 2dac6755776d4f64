# sp3_add_test(<name> SOURCES <file>... [LIBS <target>...] [LABELS <label>...] [TIMEOUT <s>] [FULL]
#              [SIMULATED])
#
# Makes one Catch2 executable and registers each of its test cases with ctest as "<name>/<case>".
# Test cases get the label "quick" and the given LABELS. With FULL, the hidden test cases, those
# tagged [.full], are registered as well, under the label "full" instead; only './dev test --all'
# runs them. A single test case may take TIMEOUT seconds, 300 unless said otherwise; a hidden one an
# hour, since a busy machine is no failure. With SIMULATED the test runs on the simulated machine:
# it is linked with sp3_sim_lab instead of the library.
include(Catch)

# What sanitizers want to be told in the environment of every test.
set(sp3_test_environment "")
if(SP3_SANITIZE STREQUAL "tsan")
  set(sp3_test_environment "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp")
endif()

function(sp3_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "FULL;SIMULATED" "TIMEOUT" "SOURCES;LIBS;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "sp3_add_test(${name}): want SOURCES, got '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()

  add_executable(${name} ${arg_SOURCES})
  if(arg_SIMULATED)
    set(library sp3_sim_lab)
  else()
    set(library sp3_internal)
  endif()
  target_link_libraries(${name} PRIVATE ${library} sp3_catch_main ${arg_LIBS})
  target_precompile_headers(${name} REUSE_FROM ${library}_test_headers)
  sp3_set_test_options(${name})

  sp3_discover_tests(${name} ${arg_TIMEOUT} "quick;${arg_LABELS}")
  if(arg_FULL)
    sp3_discover_tests(${name} 3600 "full;${arg_LABELS}" TEST_SPEC "[full]")
  endif()
endfunction()

# Catch's macros take the optimiser long, and no test is timed.
function(sp3_set_test_options target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

function(sp3_discover_tests name timeout labels)
  # A list inside PROPERTIES is expanded five times on its way through Catch's scripts; each time
  # takes one backslash off.
  list(REMOVE_ITEM labels "")
  string(REPEAT "\\" 5 escape)
  list(JOIN labels "${escape};" labels)
  # As SP3_SKIP of tests/support/skip.h says it.
  set(properties LABELS "${labels}" TIMEOUT ${timeout} SKIP_REGULAR_EXPRESSION SP3_SKIPPED)
  if(sp3_test_environment)
    list(APPEND properties ENVIRONMENT "${sp3_test_environment}")
  endif()
  catch_discover_tests(${name} TEST_PREFIX "${name}/" ${ARGN} PROPERTIES ${properties})
endfunction()

# sp3_add_script(<name> <script> <arguments>...): a Python test of built programs, labelled with its
# folder's name. Sanitizers make these programs many times slower.
function(sp3_add_script name script)
  set(timeout 300)
  if(NOT SP3_SANITIZE STREQUAL "none")
    set(timeout 1800)
  endif()
  get_filename_component(folder "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  add_test(NAME "${name}"
    COMMAND Python3::Interpreter -B "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${ARGN})
  set_tests_properties("${name}" PROPERTIES
    LABELS "quick;${folder}" TIMEOUT ${timeout} ENVIRONMENT "${sp3_test_environment}")
endfunction()
