#include "workloads/systems/quadra/engine.h"

#include <new>

#include "emu/spin.h"
#include "workloads/systems/word_tm/waiting.h"

namespace sp3::workloads::quadra {

namespace {

constexpr std::uint64_t kMagic = 0x3176'6172'6461'7571;  // "quadrav1"

std::uint64_t lines_in(const word_tm::StoreFile& file) {
  return (file.size() - word_tm::StoreFile::kHeader) / sizeof(PersistentLine);
}

// Zero pages, which cost nothing before they are touched.
std::uint64_t* zero_words(std::uint64_t count) {
  void* words = std::calloc(count, sizeof(std::uint64_t));
  if (words == nullptr) throw std::bad_alloc();
  return static_cast<std::uint64_t*>(words);
}

}  // namespace

Engine::Engine(const std::filesystem::path& path, std::uint64_t size, const Options& options)
    : file_(word_tm::StoreFile::create(path, std::max<std::uint64_t>(size, 1 << 20))),
      memory_(file_.map(options, options.flush)),
      media_(*memory_),
      lines_(media_, word_tm::StoreFile::kHeader, lines_in(file_)),
      heap_(lines_.count() * kWordsPerLine, kWordsPerLine),
      replica_(zero_words(lines_.count() * kWordsPerLine)),
      number_(1) {
  Client client(*this);
  const auto format = [&](Tx& tx) {
    heap_.format(tx);
    return true;
  };
  update(client, Body(format));
  file_.complete(*memory_, kMagic);
}

Engine::Engine(const std::filesystem::path& path, const Options& options)
    : file_(word_tm::StoreFile::open(path, kMagic)),
      memory_(file_.map(options, options.flush)),
      media_(*memory_),
      lines_(media_, word_tm::StoreFile::kHeader, lines_in(file_)),
      heap_(lines_.count() * kWordsPerLine, kWordsPerLine),
      replica_(zero_words(lines_.count() * kWordsPerLine)) {
  number_ = lines_.recover() + 1;
  load_replica();
}

// Lines of zeros are left alone: the replica's pages stay untouched where nothing was ever stored.
void Engine::load_replica() {
  for (std::uint64_t line = 0; line < lines_.count(); ++line) {
    const PersistentLine& found = lines_.at(line);
    if (found.number == 0) continue;
    std::memcpy(&replica_[line * kWordsPerLine], found.now.data(), sizeof found.now);
  }
}

bool Engine::update(Client& client, Body body) {
  Request request{body, false, false, nullptr};
  std::atomic<Request*>& mine = slots_[client.slot_].request;
  mine.store(&request, std::memory_order_release);  // (1)
  // (2) acquire pairs with (4): the request is done and what it left there is ours.
  for (emu::Spin spin; mine.load(std::memory_order_acquire) != nullptr;) {
    if (lock_.try_lock()) {
      combine(client.flushes_);
      lock_.unlock();
    } else {
      spin.pause_or_offer(word_tm::kWaitingRounds);
    }
  }
  if (request.failure) {
    ++client.counters_.aborts;
    std::rethrow_exception(request.failure);
  }
  ++client.counters_.commits;
  if (request.wrote) ++client.counters_.writing_commits;
  return request.result;
}

bool Engine::read(Client& client, Body body) {
  lock_.lock_shared(client.slot_);
  Tx tx(*this);
  bool result = false;
  try {
    result = body(tx);
  } catch (...) {
    lock_.unlock_shared(client.slot_);
    throw;
  }
  lock_.unlock_shared(client.slot_);
  SP3_ASSERT(!tx.wrote());
  ++client.counters_.commits;
  return result;
}

// Runs what waits. Requests are answered only after the fence.
void Engine::combine(emu::FlushCounts& counts) {
  media_.count_for(counts);
  pending_.clear();
  pending_slots_.clear();
  const std::size_t slots = lock_.slots_in_use();
  for (std::size_t i = 0; i < slots; ++i) {
    // (3) acquire pairs with (1).
    Request* const request = slots_[i].request.load(std::memory_order_acquire);
    if (request == nullptr) continue;
    pending_.push_back(request);
    pending_slots_.push_back(&slots_[i].request);
  }
  run_all(pending_);
  for (std::atomic<Request*>* const slot : pending_slots_) {
    slot->store(nullptr, std::memory_order_release);  // (4)
  }
}

// All as one transaction; if one of them fails, each by itself, so that it fails alone.
void Engine::run_all(const std::vector<Request*>& requests) {
  try {
    for (Request* const request : requests) run(*request);
    commit();
    return;
  } catch (...) {
    roll_back();
    if (requests.size() == 1) {
      requests.front()->failure = std::current_exception();
      return;
    }
  }
  for (Request* const request : requests) run_all({request});
}

void Engine::run(Request& request) {
  Tx tx(*this);
  request.result = request.body(tx);
  request.wrote = tx.wrote();
}

// P1: every line that the transaction opened is closed and flushed before the one fence; without it
// recovery takes them all back.
void Engine::commit() {
  if (opened_.empty()) return;
  for (const Run& run : opened_) {
    lines_.close(run.first, run.count, number_, &replica_[run.first * kWordsPerLine],
                 opened_lines_);
  }
  lines_.fence();
  opened_.clear();
  opened_lines_ = 0;
  ++number_;
}

// The lines stay open under the number for ever, with the words they had. The next number has the
// same parity, so that opening its lines does not touch the count of the last whole transaction.
void Engine::roll_back() {
  if (opened_.empty()) return;
  for (const Run& run : opened_) {
    for (std::uint64_t line = run.first; line < run.first + run.count; ++line) {
      std::memcpy(&replica_[line * kWordsPerLine], lines_.at(line).now.data(),
                  sizeof(PersistentLine::now));
    }
  }
  opened_.clear();
  opened_lines_ = 0;
  number_ += 2;
}

Engine::Client::Client(Engine& engine)
    : SlotClient(engine.places_, [&](std::size_t slot) { engine.lock_.use_slot(slot); }) {}

}  // namespace sp3::workloads::quadra
