#include "tools/crash/victim.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sp3/sp3.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/scope_exit.h"
#include "tools/crash/protocol.h"
#include "tools/crash/subject.h"

namespace sp3::tools::crash {

namespace {

void arm(const Arm& arm) {
  if (arm.step != emu::Step::none) emu::arm_kill(arm.step, arm.countdown);
}

void disarm(const Arm& arm) {
  if (arm.step != emu::Step::none) emu::arm_kill(emu::Step::none, 0);
}

// A thread, memory or room that is not to be had says nothing of the library.
MessageKind kind_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const std::system_error*>(&error) != nullptr) {
    return MessageKind::refused;
  }
  const auto* const ours = dynamic_cast<const Error*>(&error);
  const bool lacks = ours != nullptr &&
                     (ours->code() == ErrorCode::no_space || ours->code() == ErrorCode::io_error);
  return lacks ? MessageKind::refused : MessageKind::violation;
}

Message outcome_message(MessageKind kind, unsigned thread, const Outcome& outcome) {
  return {kind, thread, outcome.sequence, {outcome.a, outcome.b, 0, 0}};
}

void tell(const Pipe& pipe, const Dump& dump) {
  std::vector<Message> messages;
  for (unsigned t = 0; t < dump.journals.size(); ++t) {
    messages.push_back({MessageKind::journal, t, dump.journals[t].sequence, {}});
    for (const Outcome& outcome : dump.journals[t].outcomes) {
      messages.push_back(outcome_message(MessageKind::outcome, t, outcome));
    }
  }
  for (std::uint64_t i = 0; i < dump.cells.size(); ++i) {
    const Cell& cell = dump.cells[i];
    messages.push_back({MessageKind::cell, 0, i, {cell.version, cell.writer, cell.content, 0}});
  }
  for (const MapItem& item : dump.items) {
    messages.push_back({MessageKind::item, 0, item.key, {item.writer, 0, 0, 0}});
  }
  for (const Tag tag : dump.queue) messages.push_back({MessageKind::value, 0, tag, {}});
  pipe.send(messages);
  for (const std::string& text : dump.violations) pipe.send_text(MessageKind::violation, text);
  pipe.send({MessageKind::dumped, 0, 0, {}});
}

// One thread of transactions, from where its journal ends.
class Runner {
 public:
  Runner(const VictimOptions& options, const Pipe& pipe, const Subject& subject, Session session,
         unsigned thread, std::uint64_t last_sequence)
      : options_(options),
        pipe_(pipe),
        subject_(subject),
        session_(std::move(session)),
        thread_(thread),
        sequence_(last_sequence),
        rng_(options.run_seed, thread) {}

  void run(const std::atomic<bool>& stop) {
    // relaxed: a transaction more or less does not matter.
    while (!stop.load(std::memory_order_relaxed)) {
      const std::uint64_t dice = rng_.below(32);
      if (dice == 0) {
        cancelled();
      } else if (dice < 3) {
        observation();
      }
      transaction();
    }
    acknowledge_to(0);
    session_.close();
  }

 private:
  struct Pending {
    Ticket ticket;
    Outcome outcome;
  };

  void transaction() {
    const std::uint64_t sequence = ++sequence_;
    Outcome outcome;
    const auto body = [&](Transaction& tx) { outcome = subject_.execute(tx, thread_, sequence); };
    if (options_.window == 0) {
      session_.run(body);
      pipe_.send(outcome_message(MessageKind::acknowledged, thread_, outcome));
      return;
    }
    Ticket ticket = session_.run_async(body);
    pending_.push_back({std::move(ticket), outcome});
    // Mostly a full window, sometimes all at once, so that both waiting and helping happen.
    acknowledge_to(rng_.below(64) == 0 ? 0 : options_.window - 1);
  }

  void acknowledge_to(std::size_t left) {
    while (pending_.size() > left) {
      pending_.front().ticket.wait();
      pipe_.send(outcome_message(MessageKind::acknowledged, thread_, pending_.front().outcome));
      pending_.pop_front();
    }
  }

  // Does everything that the next transaction will, then thinks better of it: no trace may be left.
  void cancelled() {
    try {
      session_.run([&](Transaction& tx) {
        static_cast<void>(subject_.execute(tx, thread_, sequence_ + 1));
        tx.cancel();
      });
    } catch (const Cancelled&) {
    }
  }

  void observation() {
    const std::uint64_t random = rng_.next();
    const Observation seen =
        session_.run([&](Transaction& tx) { return subject_.observe(tx, random); });
    if (seen.value == kNothing) return;
    const auto kind = seen.front ? MessageKind::observed_front : MessageKind::observed;
    pipe_.send({kind, thread_, seen.cell, {seen.value, 0, 0, 0}});
  }

  const VictimOptions& options_;
  const Pipe& pipe_;
  const Subject& subject_;
  Session session_;
  unsigned thread_;
  std::uint64_t sequence_;
  workloads::Rng rng_;
  std::deque<Pending> pending_;
};

void run_threads(const VictimOptions& options, const Pipe& pipe, Pool& pool, const Subject& subject,
                 const Dump& dump) {
  std::atomic<bool> stop{false};
  std::vector<std::jthread> threads;
  const base::ScopeExit stop_all([&] { stop.store(true, std::memory_order_relaxed); });
  for (unsigned t = 0; t < options.plan.threads; ++t) {
    threads.emplace_back([&, t, session = pool.session()]() mutable {
      try {
        Runner(options, pipe, subject, std::move(session), t, dump.journals[t].sequence).run(stop);
      } catch (const Violation& violation) {
        pipe.send_text(MessageKind::violation, violation.what);
      } catch (const std::exception& error) {
        pipe.send_text(kind_of(error), fmt::format("Thread {} failed: {}", t, error.what()));
      }
    });
  }
  if (options.mode == VictimMode::close) {
    std::this_thread::sleep_for(std::chrono::milliseconds(options.close_after_ms));
    stop.store(true, std::memory_order_relaxed);
  }
  for (std::jthread& thread : threads) thread.join();
}

int create(const VictimOptions& options, const Pipe& pipe) {
  Pool pool = Pool::create(options.path, options.pool_size, options.pool);
  Session session = pool.session();
  make_subject(options.plan)->create(session);
  session.close();
  pool.close();
  pipe.send({MessageKind::closed, 0, 0, {}});
  return EXIT_SUCCESS;
}

int live(const VictimOptions& options, const Pipe& pipe) {
  arm(options.at_open);
  Pool pool = Pool::open(options.path, options.pool);
  disarm(options.at_open);
  const RecoveryReport& report = pool.recovery_report();
  pipe.send({MessageKind::recovered,
             0,
             0,
             {report.records, report.replayed, report.dropped, report.was_clean ? 1U : 0U}});

  const std::unique_ptr<Subject> subject = make_subject(options.plan);
  Session session = pool.session();
  subject->attach(session);
  const Dump dump = subject->dump(session);
  session.close();
  tell(pipe, dump);
  if (options.mode == VictimMode::tell) {
    for (;;) ::pause();
  }
  if (dump.journals.size() != options.plan.threads) return EXIT_FAILURE;  // told; nothing to run on

  if (options.mode != VictimMode::close || options.close_after_ms != 0) {
    pipe.send({MessageKind::ready, 0, 0, {}});
    arm(options.at_run);
    run_threads(options, pipe, pool, *subject, dump);
    disarm(options.at_run);
  }
  arm(options.at_close);
  pool.close();
  pipe.send({MessageKind::closed, 0, 0, {}});
  return EXIT_SUCCESS;
}

}  // namespace

int run_victim(const VictimOptions& options) {
  // A victim does not outlive whoever wants to kill it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Pipe pipe(options.fd);
  try {
    return options.mode == VictimMode::create ? create(options, pipe) : live(options, pipe);
  } catch (const std::exception& error) {
    const bool creating = options.mode == VictimMode::create;
    pipe.send_text(creating ? MessageKind::refused : kind_of(error), error.what());
    return EXIT_FAILURE;
  }
}

}  // namespace sp3::tools::crash
