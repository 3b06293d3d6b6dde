// What a supervisor and its children can be told at their start, and what a supervisor tells of them.
#pragma once

#include <ramie/actor/exit.hpp>
#include <ramie/actor/options.hpp>
#include <ramie/actor/ref.hpp>
#include <ramie/base/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ramie {

/// Which children are restarted when one of them is.
enum class restart {
  one_for_one,   // that child alone
  one_for_all,   // all of them: the others are ended first, youngest first; each starts when the one before has
  rest_for_one,  // the same for that child and those that were started after it
};

/// When a child that has ended is restarted.
enum class child_lifetime {
  permanent,  // always
  transient,  // if it ended abnormally (see exit_reason::normal)
  temporary,  // never
};

/// Whether a supervisor ends, with exit_kind::shutdown, because significant children have.
enum class auto_shutdown {
  never,
  any_significant,  // as soon as one of them ended by itself and is not restarted
  all_significant,  // with the last of them
};

/// What becomes of a child that ended.
enum class child_decision {
  as_usual,  // what its child_lifetime says
  restart,   // whatever that says; counts for max_restarts
  forget,    // it has ended for good
  give_up,   // the supervisor ends its children and itself, with exit_kind::gave_up
};

/// Why and how a child ended.
struct child_report {
  any_actor who{};
  std::string_view id;      // child_options::id
  std::string_view type{};  // its class
  const exit_reason& why;
  child_decision decision;            // restart, forget or give_up; what it would be as usual when `decide` is asked
  std::size_t restarts;               // within supervisor_options::within, this one included
  std::size_t restarts_most;          // supervisor_options::max_restarts
  std::chrono::nanoseconds delay{0};  // until the restart
};

/// How long a child rests before it is restarted.
struct restart_backoff {
  std::chrono::nanoseconds first{0};  // before the first restart; 0: none at all
  std::chrono::nanoseconds most = std::chrono::seconds{30};
  double factor = 2;    // for each restart after that, until the child has run for `most` without a failure
  double jitter = 0.2;  // the share of it that is random, so that many do not come back at the same moment
};

/// Options of a supervisor.
struct supervisor_options {
  restart strategy = restart::one_for_one;
  /// If there are more restarts than this within the time `within`, the supervisor ends its children and itself, with
  /// exit_kind::gave_up. At least 0.
  int max_restarts = 3;
  std::chrono::nanoseconds within = std::chrono::seconds{5};
  std::string name{};
  /// Children at a time; one more cannot be started (too_many_children). 0: no bound.
  std::size_t max_children = 0;
  ramie::auto_shutdown auto_shutdown = auto_shutdown::never;
  restart_backoff backoff{};
  /// Asked for each child that ended by itself. Runs in the supervisor; an exception is its failure.
  std::function<child_decision(const child_report&)> decide{};
  /// Told of each child that ended by itself, but for those that ended normally and are not restarted. Runs in the
  /// supervisor; must not throw. Empty: a line on standard error, ten in a second at most.
  std::function<void(const child_report&)> report{};
};

/// Options of one child.
struct child_options {
  child_lifetime lifetime = child_lifetime::permanent;
  actor_options actor{};
  /// Names the child in stop_child, find_child and the like; no two children have the same. Empty: none.
  std::string id{};
  /// How long a handler that waits may take to end by itself, when the supervisor ends the child. Then it is cancelled,
  /// and has the same time once more, after which the supervisor goes on without it and says so on standard error. 0:
  /// it is cancelled at once, and waited for without a limit.
  std::chrono::nanoseconds shutdown{0};
  /// See supervisor_options::auto_shutdown; for transient and temporary children.
  bool significant = false;
};

/// Options of a pool, and of all of its children. What has no comment is as in supervisor_options.
struct pool_options {
  child_lifetime lifetime = child_lifetime::temporary;
  int max_restarts = 3;
  std::chrono::nanoseconds within = std::chrono::seconds{5};
  std::string name{};
  std::size_t max_children = 0;
  /// As child_options::shutdown, for all children together: they are ended at once.
  std::chrono::nanoseconds shutdown{0};
  /// Of each child.
  actor_options actor{};
  restart_backoff backoff{};
  /// If it is there, each end is reported to the pool, and arguments of children are kept.
  std::function<child_decision(const child_report&)> decide{};
  std::function<void(const child_report&)> report{};
};

/// Thrown when a supervisor has supervisor_options::max_children children.
class too_many_children : public error {
 public:
  too_many_children() : error{"ramie: supervisor: it has max_children children already"} {}
};

/// What a child is doing.
enum class child_state {
  running,
  restarting,  // it has ended, and the supervisor will start it again
  stopped,     // by stop_child(id): it rests until restart_child(id)
};

/// What a supervisor knows of a child.
struct child_info {
  any_actor who{};
  std::string id{};
  std::string_view type{};  // its class
  child_lifetime lifetime = child_lifetime::permanent;
  child_state state = child_state::running;
  std::uint64_t restarts = 0;
  bool supervisor = false;
};

/// How many children a supervisor has.
struct child_counts {
  std::size_t children = 0;  // of all states
  std::size_t running = 0;
  std::size_t supervisors = 0;  // of `children`
};

}  // namespace ramie
