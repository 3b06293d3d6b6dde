// Facts about a type, also in programs built without run-time type information.
#pragma once

#include <string_view>
#include <type_traits>

namespace ramie {

/// Stands for a type; type_of<T>() is the only one for T. Any thread.
class type_info {
 public:
  type_info(const type_info&) = delete;
  type_info& operator=(const type_info&) = delete;

  /// As the compiler spells it.
  [[nodiscard]] constexpr std::string_view name() const noexcept { return name_; }
  [[nodiscard]] bool operator==(const type_info& other) const noexcept { return this == &other; }

 private:
  template <class T>
  struct made;
  explicit constexpr type_info(std::string_view name) noexcept : name_{name} {}

  std::string_view name_;

  template <class T>
  friend constexpr const type_info& type_of() noexcept;
};

template <class T>
struct type_info::made {
  /// The compiler's name of this function ends in "T = ...]"; with gcc, in "T = ...; ..." where more follows.
  static constexpr std::string_view name() noexcept {
    constexpr std::string_view before = "T = ";
    std::string_view text = __PRETTY_FUNCTION__;
    text.remove_prefix(text.find(before) + before.size());
    return text.substr(0, text.find(';') < text.size() - 1 ? text.find(';') : text.size() - 1);
  }
  static constexpr type_info value{name()};
};

/// As typeid: const and references make no difference.
template <class T>
[[nodiscard]] constexpr const type_info& type_of() noexcept {
  return type_info::made<std::remove_cvref_t<T>>::value;
}

}  // namespace ramie
