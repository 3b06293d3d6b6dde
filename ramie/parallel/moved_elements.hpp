// A buffer for elements that an algorithm moves out of their range and back.
#pragma once

#include <ramie/fiber/cancellation.hpp>

#include <cstddef>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace ramie::detail {

/// Room for so many elements, which are destroyed in the end if `fill` was called.
template <class T>
class moved_elements {
 public:
  /// Throws std::bad_alloc.
  explicit moved_elements(std::size_t size) : size_{size}, at_{std::allocator<T>{}.allocate(size)} {}
  moved_elements(const moved_elements&) = delete;
  moved_elements& operator=(const moved_elements&) = delete;
  ~moved_elements() {
    if constexpr (!std::is_trivially_destructible_v<T>) std::destroy_n(at_, full_);
    std::allocator<T>{}.deallocate(at_, size_);
  }

  /// loop(put) has to call put(i, where) once for each i below n, which moves *where here; by all workers, if it likes.
  /// A stop request does not end it, for all n are destroyed in the end.
  template <class Loop>
  void fill(std::size_t n, Loop loop) {
    static_assert(std::is_nothrow_move_constructible_v<T>);
    auto put = [this](std::size_t i, const auto& where) noexcept {
      std::construct_at(at_ + i, std::ranges::iter_move(where));
    };
    shield([&] { loop(put); });
    full_ = n;
  }
  void drop() noexcept {
    if constexpr (!std::is_trivially_destructible_v<T>) std::destroy_n(at_, full_);
    full_ = 0;
  }
  [[nodiscard]] T* begin() const noexcept { return at_; }

 private:
  std::size_t size_;
  T* at_;
  std::size_t full_ = 0;
};

}  // namespace ramie::detail
