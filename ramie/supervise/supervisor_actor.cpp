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
//  S6 Its destructor ends its children. If it ends for good it finishes them as well, so that a waiter for its end
//     finds all below ended. If its parent decides, they rest, and start again with it (but for temporary ones), or are
//     finished with it.
//  S7 A pool's children are not known one by one, but in its list (pool_core.cpp). One that may have to be restarted
//     becomes a child with a record when its report is handled; from then on S2 to S5 hold for it.
// So a child is run by nobody but itself while it lives, and by nobody but its supervisor while it rests.
// The records outlive the supervisor's own incarnations: what its parent restarts starts its children again.
#include <ramie/supervise/supervisor_actor.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/supervise/pool_core.hpp>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <new>
#include <source_location>

namespace ramie::detail {

supervisor_actor::supervisor_actor(std::shared_ptr<supervisor_records> records) : records_{std::move(records)} {
  auto& children = records_->children;
  records_->recent.clear();  // a new life starts afresh
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
  if (records_->pool) records_->pool->open(*self().cell());
}

supervisor_actor::~supervisor_actor() {
  end_all();
  if ((self().cell()->status & actor_cell::closed) != 0) records_->finish_all();
}

start_outcome supervisor_actor::on(const start_request& r) {
  start_outcome s;
  try {
    records_->admit(r.spec);
    s.who = r.make(*self().cell());
    records_->add(s.who, r.spec, r.is_supervisor);
  } catch (...) {
    s.failure = std::current_exception();
  }
  return s;
}

void supervisor_actor::on(const child_ended& e) {
  child_record* c = find(e.who);
  if (c == nullptr && records_->pool) c = records_->add_failed(e.who);  // S7
  if (c == nullptr) {
    e.who.cell()->let_finish();  // it was left behind
    return;
  }
  if (c->state != child_state::running || incarnation_of(*c) != e.incarnation) return;
  ended(*c, e.why);
}

void supervisor_actor::on(const start_failed& e) {
  child_record* c = find(e.who);
  if (c != nullptr && c->state == child_state::restarting && incarnation_of(*c) == e.incarnation) ended(*c, e.why);
}

void supervisor_actor::on(const restart_due& d) {
  child_record* c = find(d.who);
  if (c != nullptr && c->state == child_state::restarting && incarnation_of(*c) == d.incarnation) go_on(*c);
}

bool supervisor_actor::on(const stop_request& r) {
  child_record* c = find(r.who);
  if (c != nullptr) {
    if (records_->pool) records_->pool->let_leave(*r.who.cell());
    const bool holds_up = c->state == child_state::restarting;
    forget(*c);
    if (holds_up) go_on_without();
    return true;
  }
  if (!records_->pool || !records_->pool->let_leave(*r.who.cell())) return false;
  if (end_child(*r.who.cell(), records_->pool->shutdown)) {
    finish_child(r.who);
  } else {
    records_->pool->leave_behind(*r.who.cell());
    report_left_behind(*self().cell(), *r.who.cell(), name_of(r.who.cell()));
  }
  return true;
}

id_answer supervisor_actor::on(const id_request& r) {
  id_answer a;
  child_record* c = records_->find(r.id);
  if (c == nullptr) return a;
  a.who = c->who;
  const bool holds_up = c->state == child_state::restarting && r.is != id_request::what::find;
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
  if (holds_up) go_on_without();
  return a;
}

std::vector<any_actor> supervisor_actor::on(list_request) {
  if (records_->pool) return records_->pool->all();
  std::vector<any_actor> all;
  for (const child_record& c : records_->children) all.push_back(c.who);
  return all;
}

std::vector<child_info> supervisor_actor::on(info_request) {
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

child_counts supervisor_actor::on(counts_request) {
  child_counts n;
  for (const child_record& c : records_->children) {
    ++n.children;
    if (c.state == child_state::running) ++n.running;
    if (c.is_supervisor) ++n.supervisors;
  }
  if (records_->pool) {
    const std::size_t all = records_->pool->size();
    n.running = all - std::min(all, n.children - n.running);
    n.children = all;
  }
  return n;
}

std::string supervisor_actor::on(pool_line_request) {
  if (!records_->pool) return {};
  const child_counts n = on(counts_request{});
  std::string line = "pool (";
  line.append(records_->pool->type.name()).append("), children: ").append(std::to_string(n.children));
  if (n.running != n.children) line += ", restarting: " + std::to_string(n.children - n.running);
  if (records_->restarts != 0) line += ", restarts of children: " + std::to_string(records_->restarts);
  return line;
}

std::uint32_t supervisor_actor::incarnation_of(const child_record& c) noexcept {
  actor_cell& cell = *c.who.cell();
  std::lock_guard guard{cell.lock};
  return cell.more.load(std::memory_order_relaxed)->now.number;
}

/// A child ended by itself, or could not be started again.
void supervisor_actor::ended(child_record& c, const exit_reason& why) {
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
void supervisor_actor::leave(child_record& c) {
  const bool significant = c.spec.significant;
  records_->finish(c);
  if (!significant || records_->options.auto_shutdown == auto_shutdown::never) return;
  const auto& children = records_->children;
  if (records_->options.auto_shutdown == auto_shutdown::any_significant ||
      std::none_of(children.begin(), children.end(), [](const child_record& o) { return o.spec.significant; }))
    self().cell()->kill(exit_reason{exit_kind::shutdown});
}

void supervisor_actor::restart_after(child_record& c, std::chrono::nanoseconds delay) {
  if (records_->options.strategy != restart::one_for_one) end_others(c);
  if (delay.count() == 0) go_on(c);
  else send_after(delay, restart_due{c.who, incarnation_of(c)});
}

/// S3. Temporary ones are gone for good.
void supervisor_actor::end_others(const child_record& cause) {
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
void supervisor_actor::go_on(child_record& cause) {
  auto& children = records_->children;
  const restart strategy = records_->options.strategy;
  for (auto c = strategy == restart::one_for_all ? children.begin() : cause.place; c != children.end(); ++c) {
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

/// One that was to be restarted with others, or before them, was dealt with otherwise.
void supervisor_actor::go_on_without() {
  if (records_->options.strategy == restart::one_for_one) return;
  auto& children = records_->children;
  const auto next = std::find_if(children.begin(), children.end(),
                                 [](const child_record& c) { return c.state == child_state::restarting; });
  if (next != children.end()) go_on(*next);
}

/// Throws what the constructor throws.
void supervisor_actor::start(child_record& c) {
  c.state = child_state::restarting;
  // One that does not rest, though nobody runs it, is being finished: the runtime shuts down.
  if (!c.who.cell()->take_over()) return;
  c.who.cell()->start_again();
  c.state = child_state::running;
  c.started = os_now();
}

/// False: it did not end in time, was left behind, and is none of the children any more.
bool supervisor_actor::end(child_record& c) {
  if (end_child(*c.who.cell(), c.spec.shutdown)) return true;
  if (records_->pool) records_->pool->leave_behind(*c.who.cell());
  records_->leave_behind(*self().cell(), c);
  return false;
}

void supervisor_actor::forget(child_record& c) {
  if (end(c)) records_->finish(c);
}

void supervisor_actor::end_all() noexcept {
  const quiet_region while_they_end;
  auto& children = records_->children;
  if (records_->pool) {
    records_->pool->close(*self().cell());
    while (!children.empty()) records_->forget(children.back());
    return;
  }
  for (auto c = children.end(); c != children.begin();) {
    --c;
    auto const behind = std::next(c);
    if (!end(*c)) c = behind;
  }
}

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

}  // namespace ramie::detail
