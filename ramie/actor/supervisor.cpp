// How a supervisor goes about its work.
//
//  S1 A child that ends destroys its state, stays `waiting` (cell.cpp, A5), and reports, with the number of the
//     incarnation that has ended.
//  S2 The supervisor handles reports one at a time. One about an incarnation that it does not know as the running one is
//     old news: it ended that one itself.
//  S3 It ends the others that the strategy names, youngest first, and waits for each: they wait then too. Their reports
//     are old news by S2.
//  S4 It tells those that wait to go on, oldest first, and counts up their incarnations. A child whose constructor
//     throws reports again.
//  S5 Those that are not to be restarted are told to finish: only then have they ended for whoever joins or watches.
// The records outlive the supervisor's own incarnations: what its parent restarts starts its children again. When the
// last owner of the records goes, the children finish.
#include <ramie/actor/supervisor.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/sched/region.hpp>

#include <algorithm>
#include <deque>
#include <mutex>
#include <new>

namespace ramie {

namespace detail {

namespace {

struct child_record {
  any_actor who;
  child_lifetime lifetime;
  std::uint32_t incarnation = 0;
};

struct supervisor_records {
  supervisor_options options;
  std::vector<child_record> children;  // oldest first
  std::deque<steady::time_point> recent;
  std::uint64_t restarts = 0;

  explicit supervisor_records(supervisor_options o) : options{std::move(o)} {}
  supervisor_records(const supervisor_records&) = delete;
  supervisor_records& operator=(const supervisor_records&) = delete;
  ~supervisor_records() {
    for (child_record& c : children) c.who.cell()->command(actor_cell::finish_wanted);
  }
};

struct start_request {
  child_lifetime lifetime;
  child_maker make;
};
struct started {
  any_actor who;
  std::exception_ptr failure;
};
struct child_ended {
  any_actor who;
  std::uint32_t incarnation = 0;
  exit_reason why;
};
struct stop_request {
  any_actor who;
};
struct list_request {};
struct count_request {};

class supervisor_actor : public actor<supervisor_actor> {
 public:
  explicit supervisor_actor(std::shared_ptr<supervisor_records> records) : records_{std::move(records)} {
    for (child_record& c : records_->children) go_on(c);
  }
  ~supervisor_actor() {
    for (auto c = records_->children.rbegin(); c != records_->children.rend(); ++c) end(*c);
  }

  started on(const start_request& r) {
    started s;
    try {
      records_->children.reserve(records_->children.size() + 1);
      s.who = r.make(*self().cell());
      records_->children.push_back({s.who, r.lifetime});
    } catch (...) {
      s.failure = std::current_exception();
    }
    return s;
  }

  void on(const child_ended& e) {
    auto& children = records_->children;
    const auto child = find(e.who);
    if (child == children.end() || child->incarnation != e.incarnation) return;
    if (child->lifetime == child_lifetime::temporary ||
        (child->lifetime == child_lifetime::transient && e.why.normal())) {
      child->who.cell()->command(actor_cell::finish_wanted);
      children.erase(child);
      return;
    }
    if (!may_restart()) {
      self().cell()->kill(exit_reason{exit_kind::gave_up, e.why.exception()});
      return;
    }
    const auto place = child - children.begin();
    if (records_->options.strategy == restart::one_for_one) go_on(children[static_cast<std::size_t>(place)]);
    else restart_from(records_->options.strategy == restart::one_for_all ? 0 : static_cast<std::size_t>(place), e.who);
  }

  bool on(const stop_request& r) {
    const auto child = find(r.who);
    if (child == records_->children.end()) return false;
    end(*child);
    r.who.cell()->command(actor_cell::finish_wanted);
    records_->children.erase(find(r.who));
    return true;
  }

  std::vector<any_actor> on(list_request) {
    std::vector<any_actor> all;
    for (const child_record& c : records_->children) all.push_back(c.who);
    return all;
  }
  std::uint64_t on(count_request) { return records_->restarts; }

 private:
  std::vector<child_record>::iterator find(const any_actor& who) {
    return std::find_if(records_->children.begin(), records_->children.end(),
                        [&](const child_record& c) { return c.who == who; });
  }

  /// Within the intensity?
  bool may_restart() {
    const auto now = detail::os_now();
    auto& recent = records_->recent;
    while (!recent.empty() && now - recent.front() > records_->options.within) recent.pop_front();
    if (recent.size() >= static_cast<std::size_t>(records_->options.max_restarts)) {
      recent.clear();  // a new life, if a parent grants it, starts afresh
      return false;
    }
    recent.push_back(now);
    ++records_->restarts;
    return true;
  }

  /// S3 for one child.
  static void end(child_record& c) {
    // One that rests may have been told to go on, and do so between the two calls.
    if (c.who.cell()->kill(exit_reason{exit_kind::shutdown}))
      c.who.cell()->join(nullptr, true, std::source_location::current());
  }
  /// S4 for one child.
  static void go_on(child_record& c) {
    // One that was told so before, and has not come to it yet, is constructed once.
    if (c.who.cell()->command(actor_cell::restart_wanted)) ++c.incarnation;
  }

  void restart_from(std::size_t first, const any_actor& cause) {
    auto& children = records_->children;
    for (std::size_t i = children.size(); i-- > first;)
      if (children[i].who != cause) end(children[i]);
    // S5: temporary ones are gone for good.
    for (std::size_t i = children.size(); i-- > first;) {
      if (children[i].lifetime != child_lifetime::temporary) continue;
      children[i].who.cell()->command(actor_cell::finish_wanted);
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (std::size_t i = first; i < children.size(); ++i) go_on(children[i]);
  }

  std::shared_ptr<supervisor_records> records_;
};

void report_end(actor_cell& child, actor_cell& supervisor, std::uint32_t incarnation, const exit_reason& why) noexcept {
  bool reported = false;
  try {
    reported = supervisor.post_lifecycle(
        make_message<body_node<child_ended>>(&act_on_tell<supervisor_actor, child_ended>, message::lifecycle,
                                             child_ended{any_actor{child}, incarnation, why}));
  } catch (const std::bad_alloc&) {
    // Not known to the supervisor: not restarted.
  }
  if (!reported) child.command(actor_cell::finish_wanted);
}

std::shared_ptr<supervisor_records> make_records(const supervisor_options& options) {
  if (options.max_restarts < 0)
    throw invalid_argument{"ramie: supervisor_options::max_restarts is " + std::to_string(options.max_restarts) +
                           "; it must not be negative"};
  return std::make_shared<supervisor_records>(options);
}

actor_options options_of(const supervisor_options& options) {
  actor_options o;
  o.name = options.name;
  return o;
}

template <class M>
auto ask(actor_cell& c, M m) {
  return actor_ref<supervisor_actor>{c}.ask(std::move(m));
}

}  // namespace

void supervise(actor_cell& child, actor_cell& supervisor, std::function<void(actor_cell&)> construct) {
  actor_extras& x = child.extras();
  x.construct = std::move(construct);
  x.report = &report_end;
  supervisor.add_reference();
  x.supervisor = &supervisor;
}

any_actor start_supervisor(const supervisor_options& options) {
  return spawn_actor<supervisor_actor>(options_of(options), make_records(options));
}

any_actor start_child(actor_cell& supervisor, child_lifetime lifetime, child_maker make) {
  started s = ask(supervisor, start_request{lifetime, std::move(make)});
  if (s.failure) std::rethrow_exception(s.failure);
  return std::move(s.who);
}

any_actor start_child_supervisor(actor_cell& supervisor, child_lifetime lifetime, const supervisor_options& options) {
  return start_child(supervisor, lifetime,
                     make_child_maker<supervisor_actor, supervisor_actor>(options_of(options), make_records(options)));
}

}  // namespace detail

bool supervisor_ref::stop_child(const any_actor& child) const {
  return detail::ask(*cell(), detail::stop_request{child});
}
std::vector<any_actor> supervisor_ref::children() const { return detail::ask(*cell(), detail::list_request{}); }
std::uint64_t supervisor_ref::restarts() const { return detail::ask(*cell(), detail::count_request{}); }

supervisor::~supervisor() {
  if (!*this) return;
  detail::region shield;
  shield.shield = true;
  for (bool open = false; !open;) {
    try {
      detail::open_region(shield);
      open = true;
    } catch (const std::bad_alloc&) {
      // To end without having joined would leave children behind, and a destructor has nobody to tell.
      detail::os_sleep(1'000'000);
    }
  }
  cell()->kill(exit_reason{exit_kind::shutdown});
  cell()->join(nullptr, false, std::source_location::current());
  detail::close_region(shield);
}

}  // namespace ramie
