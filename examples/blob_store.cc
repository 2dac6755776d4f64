// A store of blobs: large values under names, changed in place.
//
//   blob_store POOL put NAME TEXT            replaces the whole blob; makes the pool if need be
//   blob_store POOL patch NAME OFFSET TEXT   overwrites or appends; the log gets only these bytes
//   blob_store POOL get NAME
//   blob_store POOL list
//   blob_store POOL churn NAME               patches it without end, for somebody to pull the plug
//
// Each command is one transaction: it is there whole or not at all, whatever happens.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <sp3/containers/rb_tree.h>
#include <sp3/ranged.h>
#include <sp3/sp3.h>

namespace {

struct Name {
  std::array<char, 40> text{};

  explicit Name(std::string_view name) {
    if (name.empty() || name.size() >= text.size())
      throw std::runtime_error("names have 1 to 39 bytes");
    std::copy(name.begin(), name.end(), text.begin());
  }
  Name() = default;
  friend bool operator<(const Name& a, const Name& b) { return a.text < b.text; }
};

using Catalogue = sp3::RbTree<Name, sp3::Ptr<sp3::RangedObject::Header>>;

Catalogue open_catalogue(sp3::Transaction& tx) {
  if (const auto header = tx.root<Catalogue::Header>("blobs")) return Catalogue::open(tx, header);
  const Catalogue made = Catalogue::create(tx);
  tx.set_root("blobs", made.header());
  return made;
}

sp3::RangedObject find(sp3::Transaction& tx, const Name& name) {
  const auto header = open_catalogue(tx).find(tx, name);
  if (!header) throw std::runtime_error("there is no blob " + std::string(name.text.data()));
  return sp3::RangedObject::open(tx, *header);
}

void put(sp3::Transaction& tx, const Name& name, std::string_view text) {
  const Catalogue catalogue = open_catalogue(tx);
  if (const auto old = catalogue.find(tx, name)) sp3::RangedObject::open(tx, *old).destroy(tx);
  const auto blob = sp3::RangedObject::create(tx, text.size());
  if (!text.empty()) blob.write(tx, 0, std::as_bytes(std::span(text)));
  catalogue.insert_or_assign(tx, name, blob.header());
}

void patch(sp3::Transaction& tx, const Name& name, std::uint64_t offset, std::string_view text) {
  const sp3::RangedObject blob = find(tx, name);
  if (offset > blob.size(tx)) throw std::runtime_error("the offset is behind the blob's end");
  if (text.empty()) return;  // an empty range is an error
  if (blob.size(tx) < offset + text.size()) blob.resize(tx, offset + text.size());
  blob.write(tx, offset, std::as_bytes(std::span(text)));
}

std::string get(sp3::Transaction& tx, const Name& name) {
  const sp3::RangedObject blob = find(tx, name);
  std::string text(blob.size(tx), '\0');
  if (!text.empty()) blob.read(tx, 0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::string list(sp3::Transaction& tx) {
  std::string lines;
  open_catalogue(tx).for_each(tx, [&](const Name& name, const auto& header) {
    const std::uint64_t size = sp3::RangedObject::open(tx, header).size(tx);
    lines += std::string(name.text.data()) + " " + std::to_string(size) + "\n";
  });
  return lines;
}

// What was printed has been written, or this throws.
void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw std::runtime_error("the output could not be written");
}

// Writes one letter after the other into the whole blob, and tells each that is durable.
void churn(sp3::Session& session, const Name& name) {
  for (unsigned i = 0;; ++i) {
    const char letter = static_cast<char>('a' + i % 26);
    session.run([&](sp3::Transaction& tx) {
      const sp3::RangedObject blob = find(tx, name);
      const std::string text(blob.size(tx), letter);
      if (text.empty()) throw std::runtime_error("the blob is empty");
      blob.write(tx, 0, std::as_bytes(std::span(text)));
    });
    std::printf("%c\n", letter);
    flush_output();
  }
}

std::uint64_t parse_offset(const std::string& text) {
  std::uint64_t offset = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), offset);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::runtime_error("not an offset: " + text);
  return offset;
}

using Command = std::function<void(sp3::Session&)>;

// What the words ask for. It is looked at before there is a pool: a mistyped command makes none.
Command command_of(const std::vector<std::string>& words) {
  const auto is = [&](std::string_view command, std::size_t arguments) {
    return words[0] == command && words.size() == 1 + arguments;
  };
  if (is("put", 2)) {
    return [name = Name(words[1]), text = words[2]](sp3::Session& session) {
      session.run([&](sp3::Transaction& tx) { put(tx, name, text); });
    };
  }
  if (is("patch", 3)) {
    return [name = Name(words[1]), offset = parse_offset(words[2]),
            text = words[3]](sp3::Session& session) {
      session.run([&](sp3::Transaction& tx) { patch(tx, name, offset, text); });
    };
  }
  if (is("get", 1)) {
    return [name = Name(words[1])](sp3::Session& session) {
      std::puts(session.run([&](sp3::Transaction& tx) { return get(tx, name); }).c_str());
    };
  }
  if (is("list", 0)) {
    return [](sp3::Session& session) {
      std::fputs(session.run([](sp3::Transaction& tx) { return list(tx); }).c_str(), stdout);
    };
  }
  if (is("churn", 1)) {
    return [name = Name(words[1])](sp3::Session& session) { churn(session, name); };
  }
  throw std::runtime_error("no such command, or not with so many words: " + words[0]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s POOL put|patch|get|list|churn ...\n", argv[0]);
    return 2;
  }
  try {
    const std::filesystem::path path = argv[1];
    const std::vector<std::string> words(argv + 2, argv + argc);
    const Command command = command_of(words);
    const bool makes_pool = words[0] == "put" && !exists(path);
    sp3::Pool pool = makes_pool ? sp3::Pool::create(path, 16 << 20) : sp3::Pool::open(path);
    sp3::Session session = pool.session();
    command(session);
    flush_output();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
