#include "tests/emu/instruction_trace.h"

#include <array>
#include <csignal>
#include <cstring>
#include <optional>

#include <ucontext.h>
#include <catch2/catch.hpp>

namespace sp3::test {
namespace {

// Filled by the handler, which may not allocate.
std::array<Executed, 4096> found;
std::size_t count = 0;

// The operand of an instruction whose ModRM byte is at `modrm`: base, index and displacement.
const std::byte* operand(const unsigned char* modrm, unsigned rex, const greg_t* registers) {
  // In the order in which instructions number them.
  constexpr int kRegisters[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};
  const auto value = [&](unsigned number) { return registers[kRegisters[number]]; };
  const unsigned mode = *modrm >> 6;
  const unsigned rm = *modrm & 7U;
  const unsigned char* next = modrm + 1;
  greg_t address = 0;
  bool has_base = true;
  if (rm == 4) {
    const unsigned sib = *next++;
    const unsigned index = (sib >> 3 & 7U) | (rex & 2U) << 2;
    if (index != 4) address += value(index) << (sib >> 6);
    has_base = (sib & 7U) != 5 || mode != 0;
    if (has_base) address += value((sib & 7U) | (rex & 1U) << 3);
  } else {
    has_base = rm != 5 || mode != 0;
    if (has_base) address += value(rm | (rex & 1U) << 3);
  }
  if (mode == 1) {
    address += static_cast<signed char>(*next++);
  } else if (mode == 2 || !has_base) {
    std::int32_t displacement = 0;
    std::memcpy(&displacement, next, sizeof displacement);
    next += sizeof displacement;
    address += displacement;
    if (rm == 5 && mode == 0)
      address += reinterpret_cast<greg_t>(next);  // relative to the next one
  }
  return reinterpret_cast<const std::byte*>(address);
}

// The instruction at `at`, if it is one of those looked for.
std::optional<Executed> decode(const unsigned char* at, const greg_t* registers) {
  const bool prefixed = *at == 0x66;
  if (prefixed) ++at;
  const unsigned rex = (*at & 0xF0U) == 0x40 ? *at++ : 0;
  if (*at++ != 0x0F) return std::nullopt;
  const unsigned opcode = *at++;
  if (opcode == 0xE7 && prefixed) return Executed{Persisting::stream, operand(at, rex, registers)};
  if (opcode != 0xAE) return std::nullopt;
  const bool in_memory = *at >> 6 != 3;
  const unsigned extension = *at >> 3 & 7U;
  if (extension == 7 && !in_memory) return Executed{Persisting::sfence, nullptr};
  if (!in_memory || (extension == 6 && !prefixed) || extension < 6) return std::nullopt;
  const Persisting what = extension == 6 ? Persisting::clwb
                          : prefixed     ? Persisting::clflushopt
                                         : Persisting::clflush;
  return Executed{what, operand(at, rex, registers)};
}

void stop(int /*signal*/, siginfo_t* /*info*/, void* context) {
  const greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto next = decode(reinterpret_cast<const unsigned char*>(registers[REG_RIP]), registers);
  if (next && count < found.size()) found[count++] = *next;
}

void set_trap_flag(bool on) {
  constexpr std::uint64_t kTrap = 0x100;
  std::uint64_t flags = __builtin_ia32_readeflags_u64();
  flags = on ? flags | kTrap : flags & ~kTrap;
  __builtin_ia32_writeeflags_u64(flags);
}

}  // namespace

std::vector<Executed> trace(const std::function<void()>& body) {
  struct sigaction action {};
  action.sa_sigaction = stop;
  action.sa_flags = SA_SIGINFO;
  struct sigaction before {};
  REQUIRE(sigaction(SIGTRAP, &action, &before) == 0);
  count = 0;
  set_trap_flag(true);
  body();
  set_trap_flag(false);
  REQUIRE(sigaction(SIGTRAP, &before, nullptr) == 0);
  REQUIRE(count < found.size());
  return {found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace sp3::test
