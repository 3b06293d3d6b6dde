// A select whose cases are put together at run time: of any kinds and element types; each may be disabled for a while.
#pragma once

#include <ramie/channel/select.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie {

/// Cases for `select`, as for Go's reflect.Select. Reusable; a select over it allocates nothing, and is as fast as one
/// with fixed cases. One fiber or thread at a time.
class case_list {
 public:
  case_list() noexcept = default;
  case_list(case_list&&) noexcept = default;
  case_list& operator=(case_list&&) noexcept = default;

  /// Adds a case made by on_recv, on_ready or on_acquire, or by on_send of std::ref(value), or of a value that a move
  /// leaves unchanged. Returns its place: 0 for the first. Throws std::bad_alloc and what moving the case throws.
  template <class C>
    requires(detail::is_channel_case<std::remove_cvref_t<C>> || detail::is_waitable<std::remove_cvref_t<C>>)
  std::size_t add(C&& c) {
    using kind = std::remove_cvref_t<C>;
    static_assert(!detail::refers_to_rvalue<kind>,
                  "ramie::case_list: a case that sends a value given as an rvalue refers to that value and cannot be "
                  "kept; give std::ref(value) of a value that lives as long as the list, or a copy");
    static_assert(!detail::sends_its_own<kind>,
                  "ramie::case_list: a case that sends its own copy of a value could send it only once; give "
                  "std::ref(value) of a value that lives as long as the list");
    all_.push_back({std::make_unique<owned_case<kind>>(std::forward<C>(c)), true});
    collect();
    return all_.size() - 1;
  }
  /// Enables or disables a case; a disabled case is never ready. Throws std::out_of_range if there is no such place.
  void enable(std::size_t place, bool on = true) {
    all_.at(place).on = on;
    collect();
  }
  /// Throws std::out_of_range if there is no such place.
  [[nodiscard]] bool is_enabled(std::size_t place) const { return all_.at(place).on; }
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  /// Removes all cases.
  void clear() noexcept {
    all_.clear();
    pointers_.clear();
    mixed_.clear();
    places_.clear();
  }

 private:
  struct any_owned {
    virtual ~any_owned() = default;
    /// Null if it is not on a channel.
    virtual detail::select_case* on_channel() noexcept = 0;
    virtual detail::mixed_case get() noexcept = 0;
    virtual void finish() = 0;
  };
  template <class C>
  struct owned_case final : any_owned {
    C own;
    explicit owned_case(C&& c) : own{std::move(c)} {}
    explicit owned_case(const C& c) : own{c} {}
    detail::select_case* on_channel() noexcept override {
      if constexpr (detail::is_channel_case<C>) return &own;
      else return nullptr;
    }
    detail::mixed_case get() noexcept override { return &own; }
    void finish() override { own.finish(); }
  };
  struct entry {
    std::unique_ptr<any_owned> one;
    bool on;
  };
  void collect() {
    pointers_.clear();
    mixed_.clear();
    places_.clear();
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (!all_[i].on) continue;
      if (detail::select_case* c = all_[i].one->on_channel(); c != nullptr) pointers_.push_back(c);
      mixed_.push_back(all_[i].one->get());
      places_.push_back(i);
    }
  }
  template <class... Spare>
  std::size_t run(const std::source_location& where, Spare&... spare) {
    constexpr bool polls = (detail::is_otherwise<Spare> || ... || false);
    const std::chrono::steady_clock::time_point* deadline = nullptr;
    if constexpr (!polls) ((deadline = &spare.deadline), ...);
    if (places_.empty() && sizeof...(Spare) == 0) detail::throw_no_cases();
    std::size_t fired;
    if (pointers_.size() == places_.size()) {
      detail::case_pointers cases{pointers_.data()};
      fired = detail::select_one(cases, pointers_.size(), !polls, deadline, where);
    } else {
      detail::mixed_cases cases{mixed_.data()};
      fired = detail::select_one(cases, mixed_.size(), !polls, deadline, where);
    }
    if (fired == detail::no_case) {
      (spare.finish(), ...);
      return all_.size();
    }
    const std::size_t place = places_[fired];
    all_[place].one->finish();
    return place;
  }
  template <class... Spare>
    requires(sizeof...(Spare) <= 1 &&
             ((detail::is_timeout<std::remove_cvref_t<Spare>> || detail::is_otherwise<std::remove_cvref_t<Spare>>) &&
              ...))
  friend std::size_t select(case_list& cases, Spare&&... spare);

  std::vector<entry> all_;
  std::vector<detail::select_case*> pointers_;  // those that are enabled, and on channels
  std::vector<detail::mixed_case> mixed_;       // those that are enabled
  std::vector<std::size_t> places_;             // theirs in `all_`
};

/// As select over a range: waits for the enabled cases, calls the function of the served one, and returns its place;
/// the list's size if on_timeout or otherwise was taken. Throws as select; invalid_argument if nothing is enabled and
/// there is neither of these two.
template <class... Spare>
  requires(sizeof...(Spare) <= 1 &&
           ((detail::is_timeout<std::remove_cvref_t<Spare>> || detail::is_otherwise<std::remove_cvref_t<Spare>>) &&
            ...))
std::size_t select(case_list& cases, Spare&&... spare) {
  return cases.run(std::source_location::current(), spare...);
}

}  // namespace ramie
