# The commit that results name: what is built from the files as they are. So it is found in a build
# step, this file run as a script, which writes
#   cmake -DSOURCE_DIR=... -DOUTPUT=... -P Commit.cmake
# a source that defines workloads::built_from(), and leaves it alone if it says the same already.

# sp3_find_commit(<folder> <commit> <why not>): what git says of a folder that is a repository's
# top, never of one unpacked inside another repository. Sets one of both, the other to "".
function(sp3_find_commit folder commit_variable why_variable)
  file(REAL_PATH "${folder}" folder)
  # The folder's own repository, whoever's it is: not one that a hook, of which this may be part,
  # was told of.
  set(git "${CMAKE_COMMAND}" -E env --unset=GIT_DIR --unset=GIT_WORK_TREE --unset=GIT_INDEX_FILE
    git --no-optional-locks -c "safe.directory=${folder}" -C "${folder}")
  set(commit "")
  execute_process(COMMAND ${git} rev-parse --show-toplevel
    RESULT_VARIABLE result OUTPUT_VARIABLE top ERROR_VARIABLE why
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
  if(result STREQUAL "0" AND top STREQUAL folder)
    execute_process(COMMAND ${git} describe --always --tags
      OUTPUT_VARIABLE commit ERROR_VARIABLE why
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
    # Not by describe --dirty, which takes the lock of the index.
    execute_process(COMMAND ${git} status --porcelain --untracked-files=no
      OUTPUT_VARIABLE changes ERROR_QUIET)
    if(commit AND changes)
      string(APPEND commit "-dirty")
    endif()
  elseif(result STREQUAL "0")
    set(why "${top} is the repository, not ${folder}")
  elseif(NOT why MATCHES "^fatal: ")  # not from git itself, which may not be there
    set(why "git: ${why} (${result})")
  endif()
  if(commit)
    set(why "")
  endif()
  string(REGEX REPLACE "\n.*" "" why "${why}")
  set(${commit_variable} "${commit}" PARENT_SCOPE)
  set(${why_variable} "${why}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  sp3_find_commit("${SOURCE_DIR}" commit why)
  if(NOT commit)
    set(commit "unknown")
  endif()
  file(CONFIGURE OUTPUT "${OUTPUT}" ESCAPE_QUOTES @ONLY CONTENT [[
#include "workloads/machine.h"

const char* sp3::workloads::built_from() noexcept { return "@commit@"; }
]])
endif()
