# Finds what the build needs on this machine and nothing else: configuring never downloads.
# Ends with one summary that lists everything missing at once.
include(FeatureSummary)

# What a project that embeds sp3 has not found is its own affair.
get_property(sp3_not_found_before GLOBAL PROPERTY PACKAGES_NOT_FOUND)
set_property(GLOBAL PROPERTY PACKAGES_NOT_FOUND "")

set(sp3_with_programs OFF)
if(SP3_BUILD_TESTS OR SP3_BUILD_TOOLS OR SP3_BUILD_BENCH)
  set(sp3_with_programs ON)
endif()

# sp3_need(<REQUIRED|OPTIONAL> <package> <purpose> [<find_package arguments>...])
macro(sp3_need type package purpose)
  find_package(${package} QUIET ${ARGN})
  set_package_properties(${package} PROPERTIES TYPE ${type} PURPOSE "${purpose}")
endmacro()

# The same for a library that has a pkg-config file only; gives the target PkgConfig::<module>.
function(sp3_need_pkgconfig type module purpose)
  pkg_check_modules(${module} QUIET IMPORTED_TARGET GLOBAL ${module})
  if(TARGET PkgConfig::${module})
    set_property(GLOBAL APPEND PROPERTY PACKAGES_FOUND ${module})
  else()
    set_property(GLOBAL APPEND PROPERTY PACKAGES_NOT_FOUND ${module})
  endif()
  set_package_properties(${module} PROPERTIES TYPE ${type} PURPOSE "${purpose}")
endfunction()

sp3_need(REQUIRED Threads "threads")
sp3_need(REQUIRED TBB "parallel recovery" CONFIG)
sp3_need(REQUIRED fmt "error messages and reports" CONFIG)
sp3_need(REQUIRED PkgConfig "finds libpmem and ISA-L")
if(PkgConfig_FOUND)
  sp3_need_pkgconfig(REQUIRED libpmem "maps persistent memory")
  sp3_need_pkgconfig(REQUIRED libisal "CRC32C of log records (ISA-L)")
  if(sp3_with_programs)
    foreach(peer IN ITEMS libpmemobj lmdb rocksdb sqlite3)
      sp3_need_pkgconfig(OPTIONAL ${peer} "a system to compare with")
    endforeach()
  endif()
endif()

if(sp3_with_programs)
  sp3_need(REQUIRED nlohmann_json "results and reports as JSON" CONFIG)
  # It counts as found when it has no Context, which is a package of its own.
  sp3_need(OPTIONAL Boost "has Boost.Context" CONFIG COMPONENTS context)
  set_package_properties(boost_context PROPERTIES PURPOSE "fibers of the core simulator")
endif()
set(sp3_with_simulator OFF)
if((SP3_BUILD_TESTS OR SP3_BUILD_TOOLS) AND TARGET Boost::context)
  set(sp3_with_simulator ON)
endif()
if(SP3_BUILD_TOOLS OR SP3_BUILD_TESTS)
  sp3_need(REQUIRED CLI11 "command line of the sp3 tool" CONFIG)
endif()
if(SP3_BUILD_BENCH)
  sp3_need(OPTIONAL benchmark "microbenchmarks in bench/" CONFIG)
endif()
if(SP3_BUILD_TESTS)
  sp3_need(REQUIRED Catch2 "test framework, Catch2 2.x (not 3)" 2...<3 CONFIG)
  sp3_need(REQUIRED Python3 "runs the layering check" COMPONENTS Interpreter)
endif()

if(PROJECT_IS_TOP_LEVEL)
  add_feature_info(tests SP3_BUILD_TESTS "the test suite")
  add_feature_info(tools SP3_BUILD_TOOLS "the sp3 command-line tool")
  add_feature_info(simulator sp3_with_simulator "simulated cores and power loss (Boost.Context)")
  add_feature_info(bench SP3_BUILD_BENCH "microbenchmarks")
  add_feature_info(examples SP3_BUILD_EXAMPLES "examples")
  add_feature_info(ccache CMAKE_CXX_COMPILER_LAUNCHER "faster rebuilds")
  feature_summary(
    WHAT ENABLED_FEATURES DISABLED_FEATURES PACKAGES_FOUND
    INCLUDE_QUIET_PACKAGES
    QUIET_ON_EMPTY)
  # A notice, which whoever hides what configuring prints still sees.
  feature_summary(
    WHAT OPTIONAL_PACKAGES_NOT_FOUND
    DESCRIPTION "sp3 builds without these packages:"
    INCLUDE_QUIET_PACKAGES
    QUIET_ON_EMPTY
    VAR sp3_builds_without)
  if(sp3_builds_without)
    message(NOTICE "${sp3_builds_without}")
  endif()
endif()
feature_summary(
  WHAT REQUIRED_PACKAGES_NOT_FOUND
  DESCRIPTION "sp3 needs these packages (on Debian, './dev setup' installs them):"
  INCLUDE_QUIET_PACKAGES
  QUIET_ON_EMPTY
  FATAL_ON_MISSING_REQUIRED_PACKAGES)

get_property(sp3_found GLOBAL PROPERTY PACKAGES_FOUND)
list(REMOVE_ITEM sp3_not_found_before ${sp3_found})
set_property(GLOBAL APPEND PROPERTY PACKAGES_NOT_FOUND ${sp3_not_found_before})
