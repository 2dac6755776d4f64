// The heavy fence where the kernel refuses what it had granted. In a child, because a filter stays.
#include <cstddef>

#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "base/fence.h"
#include "tests/support/skip.h"

namespace {

bool kernel_has_membarrier() {
  const long commands = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0;
}

// From now on membarrier fails with EPERM. Whether that could be arranged.
bool refuse_membarrier() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = std::size(filter), .filter = filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// As a program's global object finds it, which is made before those of a static library.
const bool had_membarrier = sp3::base::detail::has_membarrier.load();

}  // namespace

TEST_CASE("a program's global objects find the fences as they stay") {
  CHECK(had_membarrier == sp3::base::detail::has_membarrier.load());
}

TEST_CASE("when the kernel refuses the heavy fence, light ones become full") {
  using sp3::base::detail::has_membarrier;
  if (!kernel_has_membarrier()) SP3_SKIP("this kernel has no membarrier");
  REQUIRE(has_membarrier);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    sp3::base::heavy_fence();
    const bool before = has_membarrier;
    if (!before) ::_exit(2);
    if (!refuse_membarrier()) ::_exit(3);
    sp3::base::heavy_fence();
    ::_exit(has_membarrier ? 1 : 0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 3) SP3_SKIP("seccomp filters are not allowed here");
  CHECK(WEXITSTATUS(status) == 0);
}
