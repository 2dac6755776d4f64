#include "tools/crash/protocol.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <unistd.h>

namespace sp3::tools::crash {

namespace {
constexpr std::size_t kTextBytes = sizeof(Message::sequence) + sizeof(Message::values);
}

void Pipe::send(const Message* messages, std::size_t count) const {
  while (count > 0) {
    const std::size_t n = std::min(count, kMessagesPerWrite);
    ssize_t written = 0;
    do {
      written = ::write(fd_, messages, n * sizeof(Message));
    } while (written < 0 && errno == EINTR);
    // Nobody listens any more: there is nothing left to do for this process.
    if (written < 0) ::_exit(EXIT_FAILURE);
    messages += n;
    count -= n;
  }
}

void Pipe::send_text(MessageKind kind, const std::string& text) const {
  std::vector<Message> pieces;
  std::size_t at = 0;
  do {
    Message& piece = pieces.emplace_back();
    piece.kind = kind;
    const std::size_t n = std::min(kTextBytes, text.size() - at);
    char bytes[kTextBytes] = {};
    std::memcpy(bytes, text.data() + at, n);  // NOLINT(bugprone-not-null-terminated-result)
    std::memcpy(&piece.sequence, bytes, sizeof piece.sequence);
    std::memcpy(piece.values.data(), bytes + sizeof piece.sequence, sizeof piece.values);
    at += n;
    // One write, so that texts of two threads do not mix.
    if (pieces.size() == kMessagesPerWrite) break;
  } while (at < text.size());
  pieces.back().thread = 1;
  send(pieces);
}

bool TextReader::add(const Message& piece) {
  char bytes[kTextBytes + 1] = {};
  std::memcpy(bytes, &piece.sequence, sizeof piece.sequence);
  std::memcpy(bytes + sizeof piece.sequence, piece.values.data(), sizeof piece.values);
  text_ += bytes;
  return piece.thread == 1;
}

std::string TextReader::take() { return std::exchange(text_, std::string()); }

}  // namespace sp3::tools::crash
