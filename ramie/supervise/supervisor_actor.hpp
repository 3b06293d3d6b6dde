// The actor that a supervisor is, and what it can be asked. Its protocol is described in supervisor_actor.cpp.
#pragma once

#include <ramie/actor/actor.hpp>
#include <ramie/supervise/supervisor.hpp>
#include <ramie/supervise/supervisor_records.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ramie::detail {

struct start_request {
  child_options spec;
  child_maker make;
  bool is_supervisor;
};
struct start_outcome {
  any_actor who;
  std::exception_ptr failure;
};
struct child_ended {
  any_actor who;
  std::uint32_t incarnation = 0;
  exit_reason why;
};
struct start_failed : child_ended {};
struct restart_due {
  any_actor who;
  std::uint32_t incarnation = 0;
};
struct stop_request {
  any_actor who;
};
struct id_request {
  enum class what : std::uint8_t { find, stop, restart, forget };
  what is;
  std::string id;
};
struct id_answer {
  any_actor who;  // empty: there is none
  bool done = false;
  std::exception_ptr failure;
};
struct list_request {};
struct info_request {};
struct counts_request {};
struct restarts_request {};
/// For trees: a pool's line, empty for other supervisors.
struct pool_line_request {};

class supervisor_actor : public actor<supervisor_actor> {
 public:
  explicit supervisor_actor(std::shared_ptr<supervisor_records> records);
  ~supervisor_actor();

  start_outcome on(const start_request& r);
  void on(const child_ended& e);
  void on(const start_failed& e);
  void on(const restart_due& d);
  bool on(const stop_request& r);
  id_answer on(const id_request& r);
  std::vector<any_actor> on(list_request);
  std::vector<child_info> on(info_request);
  child_counts on(counts_request);
  std::uint64_t on(restarts_request) { return records_->restarts; }
  std::string on(pool_line_request);

 private:
  static std::uint32_t incarnation_of(const child_record& c) noexcept;
  child_record* find(const any_actor& who) noexcept { return supervisor_records::find(*self().cell(), who); }
  void give_up(const exit_reason& why) { self().cell()->kill(exit_reason{exit_kind::gave_up, why.exception()}); }
  void ended(child_record& c, const exit_reason& why);
  void leave(child_record& c);
  void restart_after(child_record& c, std::chrono::nanoseconds delay);
  void end_others(const child_record& cause);  // S3
  void go_on(child_record& cause);             // S4
  void go_on_without();
  void start(child_record& c);
  bool end(child_record& c);
  void forget(child_record& c);
  void end_all() noexcept;

  std::shared_ptr<supervisor_records> records_;
};

/// What a child tells its supervisor, see actor_extras::report.
void report_end(actor_cell& child, actor_cell& supervisor, std::uint32_t incarnation, const exit_reason& why) noexcept;

}  // namespace ramie::detail
