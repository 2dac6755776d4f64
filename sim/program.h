// Program: what the cores of a simulated run do: make a pool (or open one that a crash left), run
// transactions on a handful of objects, close.
//
// Transactions read, update, rewrite and replace cells (destroy one, make one of another size),
// some asynchronously, some only reading, some given up by an exception. Everything goes into a
// Ledger.
//
// Lifetime: outlives the Machine::run() that runs main().
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <sp3/sp3.h>

#include "sim/case.h"
#include "sim/ledger.h"
#include "sim/structure.h"

namespace sp3::sim {

// What the pool shows: the cells and, with a structure that is in order, its contents. What is
// wrong with the structure; empty if nothing.
std::string read_pool(Pool& pool, StructureKind structure, State& state);

class Program {
 public:
  // `found`: the state on media when the pool exists already; else the pool is made.
  Program(const Case& c, Ledger& ledger, const std::optional<State>& found)
      : case_(c), ledger_(ledger), found_(found) {}

  // The body of core 0.
  void main();
  // What went wrong though nothing crashed; empty if nothing.
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }
  // Whether an injected failure has reached the program.
  [[nodiscard]] bool has_failed() const noexcept { return failed_; }

 private:
  class Worker;
  class Rack;

  void run();
  void run_cores(const std::function<void(int)>& body) const;
  void work(Pool& pool, int number);
  void work_by_turns(Pool& pool);
  // Takes note of an error that the injected failure explains; any other is passed on.
  void expect_failure(const Error& error);
  void set_up(Pool& pool);
  void check_found(Pool& pool);
  void check_end(Pool& pool);

  const Case& case_;
  Ledger& ledger_;
  const std::optional<State> found_;
  std::string fault_;
  bool opened_ = false;
  bool failed_ = false;
};

}  // namespace sp3::sim
