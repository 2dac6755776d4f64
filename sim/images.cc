#include "sim/images.h"

#include <array>

namespace sp3::sim {
namespace {

using emu::sim::Hash128;
using emu::sim::Media;
using emu::sim::Random;

class Images {
 public:
  Images(Media& media, const ImageVisitor& visit)
      : media_(media), pending_(media.pending()), visit_(visit), contents_(pending_.size(), 0) {}

  // The number of images, or `limit` if it is not less.
  [[nodiscard]] std::uint64_t count(std::uint64_t limit) const {
    std::uint64_t product = 1;
    for (const Media::Pending& p : pending_) {
      if (product >= limit || p.contents >= limit) return limit;
      product *= p.contents;
    }
    return product < limit ? product : limit;
  }

  void all() {
    while (true) {
      emit();
      std::size_t i = 0;
      while (i < pending_.size() && ++contents_[i] == pending_[i].contents) contents_[i++] = 0;
      if (i == pending_.size()) return;
    }
  }

  void sample(std::uint64_t samples, Random& choose) {
    std::uint64_t done = extremes(samples, choose);
    for (; done < samples; ++done) {
      // Few units beyond the extremes find most; many at once find the rest.
      const std::uint64_t bias = choose.below(4);
      for (std::size_t i = 0; i < pending_.size(); ++i) {
        const std::uint64_t last = pending_[i].contents - 1;
        switch (choose.below(4)) {
          case 0:
            contents_[i] = choose.below(pending_[i].contents);
            break;
          case 1:
            contents_[i] = bias < 2 ? 0 : last;
            break;
          default:
            contents_[i] = choose.one_in(2) ? last : 0;
        }
      }
      emit();
    }
  }

 private:
  // Nothing, everything; then single units, from a random one on if there are too many.
  std::uint64_t extremes(std::uint64_t samples, Random& choose) {
    fill(false);
    emit();
    fill(true);
    emit();
    std::uint64_t done = 2;
    const std::size_t units = pending_.size();
    const std::size_t first = choose.below(units);
    for (std::size_t k = 0; k < units && done + 2 <= samples; ++k, done += 2) {
      const std::size_t i = (first + k) % units;
      fill(false);
      contents_[i] = pending_[i].contents - 1;
      emit();
      fill(true);
      contents_[i] = 0;
      emit();
    }
    return done;
  }

  void fill(bool everything) {
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      contents_[i] = everything ? pending_[i].contents - 1 : 0;
    }
  }

  void emit() {
    choices_.clear();
    Hash128 hash = media_.hash();
    std::array<std::byte, 512> bytes{};
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      if (contents_[i] == 0) continue;
      const std::uint32_t unit = pending_[i].unit;
      choices_.push_back({unit, contents_[i]});
      media_.content_of(unit, contents_[i], bytes.data());
      hash = hash ^ media_.certain_hash_of(unit) ^ media_.hash_of(unit, bytes.data());
    }
    visit_(choices_, hash);
  }

  Media& media_;
  const std::vector<Media::Pending> pending_;
  const ImageVisitor& visit_;
  std::vector<std::uint64_t> contents_;
  std::vector<Media::Choice> choices_;
};

}  // namespace

void for_each_image(Media& media, std::uint64_t most, std::uint64_t samples, Random& choose,
                    const ImageVisitor& visit) {
  Images images(media, visit);
  if (images.count(most + 1) <= most) {
    images.all();
  } else {
    images.sample(samples, choose);
  }
}

}  // namespace sp3::sim
