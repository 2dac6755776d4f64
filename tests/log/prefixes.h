// What a scan found of one session.
#pragma once

#include <vector>

#include <catch2/catch.hpp>

#include "tests/log/synthetic_log.h"

namespace sp3::test {

// Null: nothing.
inline const log::LogPrefix* find(const log::ScanResult& scan, SessionId session) {
  for (const log::LogPrefix& prefix : scan.sessions) {
    if (prefix.session == session) return &prefix;
  }
  return nullptr;
}

// The LSNs of a session's prefix, read back from the records themselves.
inline std::vector<Lsn> lsns(const SyntheticPool& pool, const log::ScanResult& scan,
                             SessionId session) {
  std::vector<Lsn> all;
  const log::LogPrefix* prefix = find(scan, session);
  if (prefix == nullptr) return all;
  for (const log::RecordRef& ref : prefix->records) {
    const auto record = log::trusted_record(pool.bytes.data() + ref.offset);
    CHECK(record.stamp() == ref.stamp);
    CHECK(record.lsn() == prefix->first_lsn + all.size());
    all.push_back(record.lsn());
  }
  return all;
}

inline std::vector<Lsn> range(Lsn first, Lsn last) {
  std::vector<Lsn> all;
  for (Lsn lsn = first; lsn <= last; ++lsn) all.push_back(lsn);
  return all;
}

inline void wipe(SyntheticPool& pool, SyntheticPool::Place place) {
  std::memset(pool.bytes.data() + place.offset, 0xEE, place.size);
}

}  // namespace sp3::test
