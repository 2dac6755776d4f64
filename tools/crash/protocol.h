// What a victim process tells the crash test, through a pipe.
//
// Messages have one size and are written by whole writes of at most PIPE_BUF bytes, so messages of
// several threads do not mix and a killed writer leaves no part of one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sp3::tools::crash {

enum class MessageKind : std::uint32_t {
  none,
  recovered,       // values: records, replayed, dropped, 1 if the pool was clean
  journal,         // thread, sequence: how far its program got
  outcome,         // thread, sequence, values: a, b; follows the thread's journal
  cell,            // sequence: index; values: version, writer, content
  item,            // sequence: key; values: writer
  value,           // sequence: tag, from the front of the queue
  refused,         // text, in pieces as of a violation: the machine does not give what is needed
  violation,       // text, in pieces; thread is 1 in the last
  dumped,          // the whole pool has been told
  ready,           // transactions run from now on
  acknowledged,    // thread, sequence, values: a, b
  observed,        // sequence: cell; values: version
  observed_front,  // values: tag
  closed,          // the pool was closed cleanly
};

struct Message {
  MessageKind kind = MessageKind::none;
  std::uint32_t thread = 0;
  std::uint64_t sequence = 0;
  std::array<std::uint64_t, 4> values{};
};
static_assert(sizeof(Message) == 48);
inline constexpr std::size_t kMessagesPerWrite = 4096 / sizeof(Message);  // PIPE_BUF on Linux

// The writing end. Thread safety: send() by any thread.
class Pipe {
 public:
  explicit Pipe(int fd) : fd_(fd) {}
  void send(const Message& message) const { send(&message, 1); }
  void send(const std::vector<Message>& messages) const { send(messages.data(), messages.size()); }
  void send_text(MessageKind kind, const std::string& text) const;

 private:
  void send(const Message* messages, std::size_t count) const;
  int fd_;
};

// Puts texts together again.
class TextReader {
 public:
  // Whether `text()` is complete.
  bool add(const Message& piece);
  [[nodiscard]] std::string take();

 private:
  std::string text_;
};

}  // namespace sp3::tools::crash
