// Where standard error is no terminal: what a long command tells, and that a short one does not.
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include <catch2/catch.hpp>

#include "tools/progress_bar.h"

namespace sp3::tools {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

std::string written_to(std::FILE* file) {
  std::rewind(file);
  std::array<char, 4096> text{};
  return {text.data(), std::fread(text.data(), 1, text.size(), file)};
}

TEST_CASE("A log gets a line of progress now and then, without a terminal's signs") {
  const File log(std::tmpfile(), &std::fclose);
  {
    ProgressBar progress(log.get(), std::chrono::seconds(0));
    progress.show("hashtable, 2 cores", 1, 4);
    progress.show("rbtree, 1 core", 4, 4);
    progress.clear();
  }
  CHECK(written_to(log.get()) == " 25 %: hashtable, 2 cores\n100 %: rbtree, 1 core\n");
}

TEST_CASE("What is over soon tells a log nothing") {
  const File log(std::tmpfile(), &std::fclose);
  {
    ProgressBar progress(log.get());
    for (int done = 0; done <= 3; ++done) progress.show("sps", static_cast<unsigned>(done), 3);
  }
  CHECK(written_to(log.get()).empty());
}

TEST_CASE("Progress of nothing is all of it") {
  const File log(std::tmpfile(), &std::fclose);
  ProgressBar(log.get(), std::chrono::seconds(0)).show("sps", 0, 0);
  CHECK(written_to(log.get()) == "100 %: sps\n");
}

}  // namespace
}  // namespace sp3::tools
