#include "mutants.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace ramie::interleave {

bool mutating = false;

namespace {

struct site {
  std::uintptr_t at;
  const char* what;
  const char* order;
};
// Of fixed size: the allocator may be under test.
std::array<site, 1 << 14> sites;
bool listing = false;
std::vector<std::uintptr_t> weakened;

std::uintptr_t base() noexcept {
  static const std::uintptr_t loaded_at = [] {
    Dl_info self{};
    ::dladdr(reinterpret_cast<const void*>(&read_mutants), &self);
    return reinterpret_cast<std::uintptr_t>(self.dli_fbase);
  }();
  return loaded_at;
}

const char* name_of(std::memory_order o) noexcept {
  switch (o) {
    case std::memory_order_acquire: return "acquire";
    case std::memory_order_release: return "release";
    case std::memory_order_acq_rel: return "acq_rel";
    case std::memory_order_seq_cst: return "seq_cst";
    default: return "relaxed";
  }
}

/// The address before the one to which the call returns: that belongs to the line of the call.
bool is_weakened(const char* what, const char* order, const void* code) noexcept {
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(code) - 1 - base();
  if (listing) {
    std::size_t k = at * 0x9e3779b97f4a7c15u >> 50;
    for (std::size_t tries = 0; tries < sites.size() && sites[k].at != at; ++tries, k = (k + 1) % sites.size()) {
      if (sites[k].at != 0) continue;
      sites[k] = {at, what, order};
      break;
    }
  }
  return std::ranges::find(weakened, at) != weakened.end();
}

}  // namespace

void read_mutants() {
  listing = std::getenv("RAMIE_SITES") != nullptr;
  if (const char* text = std::getenv("RAMIE_WEAKEN"); text != nullptr) {
    while (*text != '\0') {
      char* end = nullptr;
      weakened.push_back(std::strtoull(text, &end, 16));
      if (end == text) break;
      text = *end == ',' ? end + 1 : end;
    }
  }
  mutating = listing || !weakened.empty();
  static_cast<void>(base());
}

bool only_weak_runs() noexcept { return std::getenv("RAMIE_WEAKEN") != nullptr; }

void tell_sites() {
  if (!listing) return;
  FILE* to = std::fopen(std::getenv("RAMIE_SITES"), "a");
  if (to == nullptr) return;
  for (const site& s : sites)
    if (s.at != 0) std::fprintf(to, "0x%llx %s %s\n", static_cast<unsigned long long>(s.at), s.what, s.order);
  std::fclose(to);
}

std::memory_order mutated(std::memory_order o, const char* what, const void* code) noexcept {
  return is_weakened(what, name_of(o), code) ? std::memory_order_relaxed : o;
}

bool is_left_out(const char* what, const void* code) noexcept { return mutating && is_weakened(what, "fence", code); }

}  // namespace ramie::interleave
