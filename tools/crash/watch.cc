#include "tools/crash/watch.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>

namespace sp3::tools::crash {

Watch::Watch(Clock::duration deadline, Clock::time_point now)
    : deadline_(deadline), until_(now + deadline) {}

void Watch::runs(unsigned threads, Clock::duration lifetime, Clock::time_point now) {
  state_ = State::living;
  until_ = now + lifetime;
  heard_.assign(threads, now);
}

void Watch::heard(Clock::time_point now) {
  if (state_ == State::expecting) until_ = now + deadline_;
}

void Watch::heard_of(unsigned thread, Clock::time_point now) {
  if (thread >= heard_.size()) return;
  heard_[thread] = now;
  if (state_ == State::lingering && silent_threads().empty()) is_done(now);
}

void Watch::is_done(Clock::time_point now) {
  state_ = State::done;
  until_ = now;
}

void Watch::killed(Clock::time_point now) {
  state_ = State::done;
  until_ = now + deadline_;
}

Watch::Verdict Watch::judge(Clock::time_point now) {
  switch (state_) {
    case State::expecting:
    case State::lingering:
      return Verdict::hangs;
    case State::living:
      silent_since_ = now - kSilence;
      if (silent_threads().empty()) return Verdict::kill;
      state_ = State::lingering;
      until_ = now + deadline_;
      return Verdict::wait;
    case State::done:
      break;
  }
  return Verdict::kill;
}

std::vector<unsigned> Watch::silent_threads() const {
  std::vector<unsigned> silent;
  for (unsigned thread = 0; thread < heard_.size(); ++thread) {
    if (heard_[thread] < silent_since_) silent.push_back(thread);
  }
  return silent;
}

std::string process_state(pid_t pid) {
  std::map<std::string, unsigned> states;
  unsigned threads = 0;
  std::error_code ignored;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), ignored)) {
    std::string stat;
    std::getline(std::ifstream(task.path() / "stat"), stat);
    const std::size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || name_end + 2 >= stat.size()) continue;
    std::string state(1, stat[name_end + 2]);
    std::string place;
    std::getline(std::ifstream(task.path() / "wchan"), place);
    if (!place.empty() && place != "0") state += " in " + place;
    ++states[state];
    ++threads;
  }
  std::string text = fmt::format("{} threads", threads);
  const char* separator = ": ";
  for (const auto& [state, count] : states) {
    text += fmt::format("{}{} {}", separator, count, state);
    separator = ", ";
  }
  return text;
}

}  // namespace sp3::tools::crash
