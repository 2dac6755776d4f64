// Lists of damage that stay short however much there is: what is `damage` and `more_damage` in a
// report.
#pragma once

#include <cstddef>
#include <utility>

#include <sp3/report.h>

namespace sp3::base {

inline constexpr std::size_t kMostDamage = 1000;

template <class Report>
void add_damage(Report& report, Damage damage) {
  if (report.damage.size() < kMostDamage) {
    report.damage.push_back(std::move(damage));
  } else {
    ++report.more_damage;
  }
}

template <class From, class To>
void add_all_damage(const From& from, To& to) {
  for (const Damage& damage : from.damage) add_damage(to, damage);
  to.more_damage += from.more_damage;
}

}  // namespace sp3::base
