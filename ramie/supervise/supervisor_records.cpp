#include <ramie/supervise/supervisor_records.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/sched/residents.hpp>
#include <ramie/supervise/pool_core.hpp>
#include <ramie/worker/worker.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <source_location>
#include <utility>

namespace ramie::detail {

void supervisor_records::admit(const child_options& spec) const {
  if (options.max_children != 0 && children.size() >= options.max_children) throw too_many_children{};
  if (!spec.id.empty() && by_id.contains(spec.id))
    throw invalid_argument{"ramie: supervisor: there is a child with the id \"" + spec.id + "\" already"};
  if (spec.significant && spec.lifetime == child_lifetime::permanent)
    throw invalid_argument{
        "ramie: child_options::significant: a permanent child is always restarted; make it transient or temporary"};
}

child_record& supervisor_records::add(const any_actor& who, const child_options& spec, bool is_supervisor) {
  try {
    child_record& c = children.emplace_back();
    c.place = std::prev(children.end());
    c.who = who;
    c.spec = spec;
    c.is_supervisor = is_supervisor;
    c.started = os_now();
    if (!spec.id.empty()) by_id.emplace(spec.id, &c);
    who.cell()->more.load(std::memory_order_relaxed)->record = &c;
    return c;
  } catch (...) {
    if (!children.empty() && children.back().who == who) children.pop_back();
    who.cell()->kill(exit_reason{exit_kind::shutdown});  // its report finds no record, and it ends for good
    throw;
  }
}

child_record* supervisor_records::find(const actor_cell& supervisor, const any_actor& who) noexcept {
  std::lock_guard guard{who.cell()->lock};
  const actor_extras* x = who.cell()->more.load(std::memory_order_relaxed);
  // Another supervisor's child has a record, too, which is that one's.
  if (x == nullptr || x->supervisor != &supervisor) return nullptr;
  return static_cast<child_record*>(x->record);
}

child_record* supervisor_records::find(std::string_view id) const noexcept {
  const auto found = by_id.find(id);
  return found == by_id.end() ? nullptr : found->second;
}

void supervisor_records::forget(child_record& c) noexcept {
  c.who.cell()->more.load(std::memory_order_relaxed)->record = nullptr;
  if (!c.spec.id.empty()) by_id.erase(c.spec.id);
  children.erase(c.place);
}

void supervisor_records::finish(child_record& c) noexcept {
  const any_actor who = c.who;
  forget(c);
  finish_child(who);
}

void finish_child(const any_actor& who) noexcept {
  if (current_worker() != nullptr && who.cell()->take_over()) return who.cell()->finish_here();
  who.cell()->let_finish();
  // One that could not report its end finishes in a turn of its own, and one may be finished by the runtime that shuts
  // down. Neither waits for this actor; it looks now and then whether the runtime ends meanwhile.
  if (current_worker() == nullptr || this_actor() == nullptr) return;
  try {
    while (!is_draining()) {
      const auto deadline = os_now() + std::chrono::seconds{1};
      if (who.cell()->join(&deadline, false, std::source_location::current())) return;
    }
  } catch (const cancelled&) {
    // The runtime shuts down, and sees to it.
  } catch (...) {
    // No memory for the timer of the bound, or no stack to wait on: it ends by itself, a little later than its
    // supervisor.
  }
}

void supervisor_records::finish_all() noexcept {
  while (!children.empty()) finish(children.back());
}

bool end_child(actor_cell& child, std::chrono::nanoseconds time) {
  const auto here = std::source_location::current();
  if (time.count() <= 0) {
    if (child.kill(exit_reason{exit_kind::shutdown})) child.join(nullptr, true, here);
    return true;
  }
  if (!child.kill(exit_reason{exit_kind::shutdown}, false)) return true;
  auto deadline = deadline_after(time);
  if (child.join(&deadline, true, here)) return true;
  child.kill(exit_reason{exit_kind::killed});
  deadline = deadline_after(time);
  return child.join(&deadline, true, here);
}

void report_left_behind(actor_cell& supervisor, actor_cell& child, const char* id) noexcept {
  const std::string_view type = child.how().of->name();
  std::fprintf(stderr, "ramie: supervisor \"%s\": child \"%s\" (%.*s) does not end, though killed; it is left behind\n",
               name_of(&supervisor), id, static_cast<int>(type.size()), type.data());
}

void supervisor_records::leave_behind(actor_cell& supervisor, child_record& c) noexcept {
  report_left_behind(supervisor, *c.who.cell(), c.spec.id.empty() ? name_of(c.who.cell()) : c.spec.id.c_str());
  forget(c);
}

child_record* supervisor_records::add_failed(const any_actor& who) noexcept {
  if (!pool->keeps(*who.cell())) return nullptr;
  try {
    return &add(who, child_options{.lifetime = pool->lifetime, .shutdown = pool->shutdown}, false);
  } catch (...) {
    return nullptr;  // no memory: it ends
  }
}

bool supervisor_records::may_restart() {
  const auto now = os_now();
  while (!recent.empty() && now - recent.front() > options.within) recent.pop_front();
  if (recent.size() >= static_cast<std::size_t>(options.max_restarts)) return false;
  recent.push_back(now);
  ++restarts;
  return true;
}

std::chrono::nanoseconds supervisor_records::delay_of(child_record& c) noexcept {
  const restart_backoff& b = options.backoff;
  if (b.first.count() <= 0) return {};
  if (os_now() - c.started > b.most) c.failures = 0;
  const auto most = static_cast<double>(b.most.count());
  double delay = static_cast<double>(b.first.count());
  for (std::uint32_t i = 0; i < c.failures && delay < most; ++i) delay *= b.factor;
  delay = std::min(delay, most);
  ++c.failures;
  // xorshift64 (G. Marsaglia, 2003).
  drawn ^= drawn << 13;
  drawn ^= drawn >> 7;
  drawn ^= drawn << 17;
  const double random = static_cast<double>(drawn >> 11) * 0x1p-53;
  delay *= 1 - std::clamp(b.jitter, 0.0, 1.0) * random;
  return std::chrono::nanoseconds{static_cast<std::int64_t>(delay)};
}

void supervisor_records::tell(actor_cell& supervisor, const child_report& r) {
  if (options.report) {
    options.report(r);
    return;
  }
  const auto now = os_now();
  if (now - told_since > std::chrono::seconds{1}) {
    told_since = now;
    told = 0;
  }
  if (r.decision != child_decision::give_up && told >= 10) {
    ++untold;
    return;
  }
  ++told;
  std::string text = "ramie: supervisor \"" + std::string{name_of(&supervisor)} + "\": child \"";
  text.append(r.id.empty() ? r.who.name() : r.id)
      .append("\" (")
      .append(r.type)
      .append(") ended, ")
      .append(r.why.what());
  const std::string most = std::to_string(r.restarts_most);
  const double within = std::chrono::duration<double>(options.within).count();
  if (r.decision == child_decision::restart) {
    text += "; restart " + std::to_string(r.restarts) + " of " + most;
    if (r.delay.count() != 0) text += ", in " + std::to_string(r.delay.count() / 1'000'000) + " ms";
  } else if (r.decision == child_decision::give_up) {
    text += "; the supervisor gives up: " + most + " restarts within " + std::to_string(within) + " s are the most";
  } else {
    text += "; it is not restarted";
  }
  if (untold != 0) text += " (" + std::to_string(std::exchange(untold, 0)) + " reports before this were left out)";
  text += '\n';
  std::fputs(text.c_str(), stderr);
}

std::shared_ptr<supervisor_records> make_records(const supervisor_options& options) {
  if (options.max_restarts < 0)
    throw invalid_argument{"ramie: supervisor_options::max_restarts is " + std::to_string(options.max_restarts) +
                           "; it must not be negative"};
  return std::make_shared<supervisor_records>(options);
}

}  // namespace ramie::detail
