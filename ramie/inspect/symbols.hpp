// Names of functions and variables, found by code that may run in a signal handler.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ramie::detail {

struct code_place {
  std::uintptr_t offset = 0;       // in the file; what addr2line takes
  const char* path = nullptr;      // null: no loaded object holds it; "": the program itself
  const char* function = nullptr;  // or variable, as the linker knows it; null: its file has no name for it
  std::uintptr_t into = 0;         // bytes from its beginning
};

/// Reads the files of loaded objects, which it maps and keeps for the next question. One thread at a time. What it
/// returned is valid while it lives. Async-signal-safe as find_loaded_object is. Nothing is allocated.
class symbol_finder {
 public:
  symbol_finder() noexcept = default;
  symbol_finder(const symbol_finder&) = delete;
  symbol_finder& operator=(const symbol_finder&) = delete;
  ~symbol_finder();

  [[nodiscard]] code_place find(std::uintptr_t address) noexcept;

 private:
  struct file {
    std::uintptr_t base = 0;
    const char* path = nullptr;
    const char* bytes = nullptr;  // null: not available
    std::size_t size = 0;
  };
  struct remembered {
    std::uintptr_t address = 0;
    code_place place;
  };
  file& open(std::uintptr_t base, const char* path) noexcept;
  static void look_up(const file& f, code_place& place) noexcept;

  static constexpr std::size_t files_most = 16;
  std::array<file, files_most> files_{};
  std::size_t count_ = 0;
  std::array<remembered, 256> cache_{};
};

}  // namespace ramie::detail
