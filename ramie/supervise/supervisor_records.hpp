// What a supervisor knows of its children, over its own restarts.
#pragma once

#include <ramie/actor/extras.hpp>
#include <ramie/actor/ref.hpp>
#include <ramie/supervise/supervisor_options.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace ramie::detail {

class pool_core;

struct child_record {
  any_actor who;
  child_options spec;
  bool is_supervisor = false;
  child_state state = child_state::running;
  std::uint64_t restarts = 0;
  std::uint32_t failures = 0;  // in a row, for back-off
  steady::time_point started{};
  std::list<child_record>::iterator place{};
};

/// Used by the supervisor alone. Finding a child takes the same time, however many there are: its cell refers to its
/// record.
struct supervisor_records {
  supervisor_options options;
  std::list<child_record> children;  // oldest first
  std::map<std::string, child_record*, std::less<>> by_id;
  std::deque<steady::time_point> recent;
  std::uint64_t restarts = 0;
  std::shared_ptr<pool_core> pool;  // of a pool: `children` are those of its children that have failed
  // The default report, ten a second at most.
  steady::time_point told_since{};
  std::uint32_t told = 0;
  std::uint64_t untold = 0;
  std::uint64_t drawn = 0x9e3779b97f4a7c15u;  // for jitter

  explicit supervisor_records(supervisor_options o) : options{std::move(o)} {}
  supervisor_records(const supervisor_records&) = delete;
  supervisor_records& operator=(const supervisor_records&) = delete;
  ~supervisor_records() { finish_all(); }

  /// Throws too_many_children, invalid_argument.
  void admit(const child_options& spec) const;
  /// Throws std::bad_alloc; then the child is ended.
  child_record& add(const any_actor& who, const child_options& spec, bool is_supervisor);
  /// One of the pool's, at its first report. Null: it is not restarted, whatever it was; let it finish.
  child_record* add_failed(const any_actor& who) noexcept;
  /// Null: it is none of the children.
  [[nodiscard]] static child_record* find(const actor_cell& supervisor, const any_actor& who) noexcept;
  [[nodiscard]] child_record* find(std::string_view id) const noexcept;
  /// A child that rests has ended for good when this returns, and is none of the children any more.
  void finish(child_record& c) noexcept;
  void finish_all() noexcept;
  void leave_behind(actor_cell& supervisor, child_record& c) noexcept;
  /// Within the intensity? Then it counts.
  bool may_restart();
  std::chrono::nanoseconds delay_of(child_record& c) noexcept;
  /// Tells the hook, or standard error.
  void tell(actor_cell& supervisor, const child_report& r);
  void forget(child_record& c) noexcept;
};

/// Ends an incarnation. False: it did not end in time (child_options::shutdown).
bool end_child(actor_cell& child, std::chrono::nanoseconds time);
/// A child that rests has ended for good when this returns.
void finish_child(const any_actor& who) noexcept;
void report_left_behind(actor_cell& supervisor, actor_cell& child, const char* id) noexcept;

/// Throws invalid_argument, std::bad_alloc.
std::shared_ptr<supervisor_records> make_records(const supervisor_options& options);

}  // namespace ramie::detail
