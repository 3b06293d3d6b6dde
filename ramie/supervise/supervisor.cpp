// How a supervisor goes about its work.
//
//  S1 A child that ends destroys its state, comes to rest (I9 in incarnation.cpp), and reports, with the number of the
//     incarnation that has ended.
//  S2 The supervisor handles reports one at a time. One about a child that it does not know as running, or about
//     another incarnation than the one that it started last, is old news: it ended that one itself.
//  S3 It ends the others that the strategy names, youngest first, and waits for each until it rests. A child that rests
//     stays so until its supervisor takes it over, so nothing can start behind the supervisor's back.
//  S4 It takes those that rest over, and constructs them anew itself, oldest first, each when the one before is there:
//     a constructor finds those before it ready, and may ask them. If one throws, those behind it go on resting, and
//     the failure is handled like a report.
//  S5 Those that are not to be restarted are finished, again by itself.
//  S6 Its destructor ends its children. If it ends for good it finishes them as well, so that whoever waits for its end
//     finds all below ended. If its parent decides, they rest, and start again with it (but for temporary ones), or are
//     finished with it.
// So a child is run by nobody but itself while it lives, and by nobody but its supervisor while it rests.
// The records outlive the supervisor's own incarnations: what its parent restarts starts its children again.
#include <ramie/supervise/supervisor.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/supervise/supervisor_records.hpp>
#include <ramie/task/region.hpp>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <new>

namespace ramie {

namespace detail {

namespace {

struct start_request {
  child_options spec;
  child_maker make;
  bool is_supervisor;
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
struct answer {
  any_actor who;  // empty: there is none
  bool done = false;
  std::exception_ptr failure;
};
struct list_request {};
struct info_request {};
struct count_request {};

class supervisor_actor : public actor<supervisor_actor> {
 public:
  explicit supervisor_actor(std::shared_ptr<supervisor_records> records) : records_{std::move(records)} {
    auto& children = records_->children;
    for (auto c = children.begin(); c != children.end();) {
      auto const behind = std::next(c);
      if (c->spec.lifetime == child_lifetime::temporary) records_->finish(*c);
      c = behind;
    }
    try {
      for (child_record& c : children) start(c);
    } catch (...) {
      end_all();
      throw;
    }
  }
  ~supervisor_actor() {
    end_all();
    if ((self().cell()->status & actor_cell::closed) != 0) records_->finish_all();
  }

  started on(const start_request& r) {
    started s;
    try {
      records_->admit(r.spec);
      s.who = r.make(*self().cell());
      records_->add(s.who, r.spec, r.is_supervisor);
    } catch (...) {
      s.failure = std::current_exception();
    }
    return s;
  }

  void on(const child_ended& e) {
    child_record* c = find(e.who);
    if (c == nullptr) {
      e.who.cell()->let_finish();  // it was left behind
      return;
    }
    if (c->state != child_state::running || incarnation_of(*c) != e.incarnation) return;
    ended(*c, e.why);
  }
  void on(const start_failed& e) {
    child_record* c = find(e.who);
    if (c != nullptr && c->state == child_state::restarting && incarnation_of(*c) == e.incarnation) ended(*c, e.why);
  }
  void on(const restart_due& d) {
    child_record* c = find(d.who);
    if (c != nullptr && c->state == child_state::restarting && incarnation_of(*c) == d.incarnation) go_on(*c);
  }

  bool on(const stop_request& r) {
    child_record* c = find(r.who);
    if (c == nullptr) return false;
    forget(*c);
    return true;
  }

  answer on(const id_request& r) {
    answer a;
    child_record* c = records_->find(r.id);
    if (c == nullptr) return a;
    a.who = c->who;
    if (r.is == id_request::what::stop && c->spec.lifetime != child_lifetime::temporary) {
      if (end(*c)) c->state = child_state::stopped;
      a.done = true;
    } else if (r.is == id_request::what::stop || r.is == id_request::what::forget) {
      forget(*c);
      a.done = true;
    } else if (r.is == id_request::what::restart && c->state != child_state::running) {
      try {
        start(*c);
        a.done = true;
      } catch (...) {
        c->state = child_state::stopped;
        a.failure = std::current_exception();
      }
    }
    return a;
  }

  std::vector<any_actor> on(list_request) {
    std::vector<any_actor> all;
    for (const child_record& c : records_->children) all.push_back(c.who);
    return all;
  }
  std::vector<child_info> on(info_request) {
    std::vector<child_info> all;
    for (const child_record& c : records_->children)
      all.push_back({.who = c.who,
                     .id = c.spec.id,
                     .type = c.who.cell()->how().of->name(),
                     .lifetime = c.spec.lifetime,
                     .state = c.state,
                     .restarts = c.restarts,
                     .supervisor = c.is_supervisor});
    return all;
  }
  std::uint64_t on(count_request) { return records_->restarts; }

 private:
  using list = std::list<child_record>;

  static std::uint32_t incarnation_of(const child_record& c) noexcept {
    actor_cell& cell = *c.who.cell();
    std::lock_guard guard{cell.lock};
    return cell.more.load(std::memory_order_relaxed)->now.number;
  }

  child_record* find(const any_actor& who) noexcept { return supervisor_records::find(*self().cell(), who); }

  void give_up(const exit_reason& why) { self().cell()->kill(exit_reason{exit_kind::gave_up, why.exception()}); }

  /// A child ended by itself, or could not be started again.
  void ended(child_record& c, const exit_reason& why) {
    const bool again =
        c.spec.lifetime == child_lifetime::permanent || (c.spec.lifetime == child_lifetime::transient && !why.normal());
    child_report r{.who = c.who,
                   .id = c.spec.id,
                   .type = c.who.cell()->how().of->name(),
                   .why = why,
                   .decision = again ? child_decision::restart : child_decision::forget,
                   .restarts = records_->recent.size(),
                   .restarts_most = static_cast<std::size_t>(records_->options.max_restarts)};
    if (records_->options.decide) {
      const child_decision decided = records_->options.decide(r);
      if (decided != child_decision::as_usual) r.decision = decided;
    }
    if (r.decision == child_decision::restart) {
      if (records_->may_restart()) {
        r.delay = records_->delay_of(c);
        ++r.restarts;
        ++c.restarts;
      } else {
        r.decision = child_decision::give_up;
      }
    }
    if (r.decision != child_decision::forget || !why.normal()) records_->tell(*self().cell(), r);
    c.state = child_state::restarting;
    if (r.decision == child_decision::give_up) give_up(why);
    else if (r.decision == child_decision::forget) leave(c);
    else restart_after(c, r.delay);
  }

  /// One that is not restarted.
  void leave(child_record& c) {
    const bool significant = c.spec.significant;
    records_->finish(c);
    if (!significant || records_->options.auto_shutdown == auto_shutdown::never) return;
    const auto& children = records_->children;
    if (records_->options.auto_shutdown == auto_shutdown::any_significant ||
        std::none_of(children.begin(), children.end(), [](const child_record& o) { return o.spec.significant; }))
      self().cell()->kill(exit_reason{exit_kind::shutdown});
  }

  void restart_after(child_record& c, std::chrono::nanoseconds delay) {
    if (records_->options.strategy != restart::one_for_one) end_others(c);
    if (delay.count() == 0) go_on(c);
    else send_after(delay, restart_due{c.who, incarnation_of(c)});
  }

  /// S3. Temporary ones are gone for good.
  void end_others(const child_record& cause) {
    auto& children = records_->children;
    for (auto c = children.end(); c != children.begin();) {
      --c;
      if (&*c == &cause) {
        if (records_->options.strategy == restart::rest_for_one) return;
        continue;
      }
      if (c->state == child_state::stopped) continue;
      // What comes before is looked for anew: an end may leave a child behind, and take it out.
      auto const behind = std::next(c);
      if (!end(*c)) c = behind;
      else if (c->spec.lifetime == child_lifetime::temporary) {
        records_->finish(*c);
        c = behind;
      } else {
        c->state = child_state::restarting;
      }
    }
  }

  /// S4.
  void go_on(child_record& cause) {
    auto& children = records_->children;
    const restart strategy = records_->options.strategy;
    auto c = children.begin();
    if (strategy != restart::one_for_all)
      while (&*c != &cause) ++c;
    for (; c != children.end(); ++c) {
      if (c->state != child_state::restarting) continue;
      try {
        start(*c);
      } catch (...) {
        self().cell()->post_lifecycle(make_message<body_node<start_failed>>(
            &act_on_tell<supervisor_actor, start_failed>, message::lifecycle,
            start_failed{{c->who, incarnation_of(*c), exit_reason{exit_kind::failed, std::current_exception()}}}));
        return;
      }
      if (strategy == restart::one_for_one) return;
    }
  }

  /// Throws what the constructor throws.
  void start(child_record& c) {
    c.state = child_state::restarting;
    // One that does not rest, though nobody runs it, is being finished: the runtime shuts down.
    if (!c.who.cell()->take_over()) return;
    c.who.cell()->start_again();
    c.state = child_state::running;
    c.started = os_now();
  }

  /// False: it did not end in time, was left behind, and is none of the children any more.
  bool end(child_record& c) {
    actor_cell& cell = *c.who.cell();
    const auto here = std::source_location::current();
    const std::chrono::nanoseconds time = c.spec.shutdown;
    if (time.count() <= 0) {
      if (cell.kill(exit_reason{exit_kind::shutdown})) cell.join(nullptr, true, here);
      return true;
    }
    if (!cell.kill(exit_reason{exit_kind::shutdown}, false)) return true;
    auto deadline = deadline_after(time);
    if (cell.join(&deadline, true, here)) return true;
    cell.kill(exit_reason{exit_kind::killed});
    deadline = deadline_after(time);
    if (cell.join(&deadline, true, here)) return true;
    records_->leave_behind(*self().cell(), c);
    return false;
  }

  void forget(child_record& c) {
    if (end(c)) records_->finish(c);
  }

  void end_all() noexcept {
    auto& children = records_->children;
    for (auto c = children.end(); c != children.begin();) {
      --c;
      auto const behind = std::next(c);
      if (!end(*c)) c = behind;
    }
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
  if (!reported) child.let_finish();
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

any_actor start_child(actor_cell& supervisor, const child_options& spec, child_maker make, bool is_supervisor) {
  started s = ask(supervisor, start_request{spec, std::move(make), is_supervisor});
  if (s.failure) std::rethrow_exception(s.failure);
  return std::move(s.who);
}

any_actor start_child_supervisor(actor_cell& supervisor, const child_options& spec, const supervisor_options& options) {
  actor_options of_actor = spec.actor;
  if (!options.name.empty()) of_actor.name = options.name;
  return start_child(supervisor, spec,
                     make_child_maker<supervisor_actor, supervisor_actor>(std::move(of_actor), make_records(options)),
                     true);
}

namespace {

bool ask_by_id(actor_cell& c, id_request::what what, std::string_view id) {
  const answer a = ask(c, id_request{what, std::string{id}});
  if (a.failure) std::rethrow_exception(a.failure);
  return a.done;
}

void print_tree(const supervisor_ref& top, const std::string& label, std::size_t depth, std::string& out) {
  out += std::string(2 * depth, ' ') + label + '\n';
  std::vector<child_info> children;
  try {
    children = top.child_infos();
  } catch (const actor_down&) {
    return;  // it ends just now, or is being restarted
  }
  for (const child_info& c : children) {
    std::string line = c.id.empty() ? std::string{c.who.name()} : c.id;
    if (!line.empty()) line += ' ';
    if (c.supervisor) line += "supervisor";
    else line.append("(").append(c.type).append(")");
    if (c.state != child_state::running) line += c.state == child_state::stopped ? ", stopped" : ", restarting";
    if (c.restarts != 0) line += ", restarts: " + std::to_string(c.restarts);
    if (c.supervisor) print_tree(supervisor_ref{c.who}, line, depth + 1, out);
    else out += std::string(2 * (depth + 1), ' ') + line + '\n';
  }
}

}  // namespace
}  // namespace detail

bool supervisor_ref::stop_child(const any_actor& child) const {
  return detail::ask(*cell(), detail::stop_request{child});
}
bool supervisor_ref::stop_child(std::string_view id) const {
  return detail::ask_by_id(*cell(), detail::id_request::what::stop, id);
}
bool supervisor_ref::restart_child(std::string_view id) const {
  return detail::ask_by_id(*cell(), detail::id_request::what::restart, id);
}
bool supervisor_ref::delete_child(std::string_view id) const {
  return detail::ask_by_id(*cell(), detail::id_request::what::forget, id);
}
any_actor supervisor_ref::find_child(std::string_view id) const {
  return detail::ask(*cell(), detail::id_request{detail::id_request::what::find, std::string{id}}).who;
}
std::vector<any_actor> supervisor_ref::children() const { return detail::ask(*cell(), detail::list_request{}); }
std::vector<child_info> supervisor_ref::child_infos() const { return detail::ask(*cell(), detail::info_request{}); }
child_counts supervisor_ref::count_children() const {
  child_counts n;
  for (const child_info& c : child_infos()) {
    ++n.children;
    if (c.state == child_state::running) ++n.running;
    if (c.supervisor) ++n.supervisors;
  }
  return n;
}
std::uint64_t supervisor_ref::restarts() const { return detail::ask(*cell(), detail::count_request{}); }
std::string supervisor_ref::tree() const {
  std::string out;
  std::string label{name()};
  label += label.empty() ? "supervisor" : " supervisor";
  detail::print_tree(*this, label, 0, out);
  return out;
}

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
