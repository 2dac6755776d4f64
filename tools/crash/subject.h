// Subject: one workload's data in a pool, made so that an oracle can tell what happened to it.
//
// Beside the workload's own structure every pool holds a journal for each thread, written by each
// of its transactions, and (for maps) an array with one versioned cell for each key, written
// together with the map. A transaction that is torn apart, lost, doubled or reordered shows in one
// of them.
//
// Thread safety: after create or attach, const members by several threads, each with its session.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <sp3/sp3.h>

#include "tools/crash/operation.h"
#include "tools/crash/oracle.h"

namespace sp3::tools::crash {

// What a read-only transaction saw: a cell's version, or the queue's front.
struct Observation {
  bool front = false;
  std::uint64_t cell = 0;
  std::uint64_t value = 0;  // version or tag; kNothing if there was nothing to see
};

// Thrown by a transaction's body that sees what it must never see.
struct Violation {
  std::string what;
};

class Subject {
 public:
  Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  virtual ~Subject() = default;

  virtual void create(Session& session) = 0;
  virtual void attach(Session& session) = 0;
  // Runs one step inside `tx`, journal included; returns what it met. Throws Violation.
  virtual Outcome execute(Transaction& tx, unsigned thread, std::uint64_t sequence) const = 0;
  // Reads at random, changing nothing. Throws Violation.
  virtual Observation observe(Transaction& tx, std::uint64_t random) const = 0;
  virtual Dump dump(Session& session) const = 0;
};

std::unique_ptr<Subject> make_subject(const Plan& plan);

}  // namespace sp3::tools::crash
