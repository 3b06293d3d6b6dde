// A send that is inlined takes its actor's mailbox as the owner of the lock. While an actor is traced its lock has no
// owner, so that each send comes to try_post, which looks for traces.
//
//  M1 A trace is put into the list, and counted, before it takes the locks of the actors there are from their owners.
//  M2 A new actor is put into its worker's list, under that list's lock, and only then looks whether it is traced.
//  So an actor that M1 does not meet in the list sees, at M2, that it is traced.
//  M3 A trace that ends leaves the list first, and then lets the locks be owned again, if it was the last of its
//     runtime. The two ends of this, M1 and M3, are done by one trace at a time.
#include <ramie/patterns/message_trace.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/base/error.hpp>
#include <ramie/patterns/watches.hpp>
#include <ramie/worker/observing.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>

namespace ramie {

namespace detail {
atomic<std::uint32_t> message_traces{0};
}

namespace {

using namespace detail;

struct trace_facts {
  message_filter only;
  message_trace::function each;
  std::chrono::steady_clock::time_point since;
};
using trace_watch = watch<trace_facts>;

struct trace_office {
  watches<trace_facts> traces;
  std::mutex beginning_or_ending;  // M3
};
trace_office& tracing() {
  static auto* the_office = new trace_office;  // actors may end after static destruction began
  return *the_office;
}

bool is_traced(const actor_cell& c) {
  bool traced = false;
  tracing().traces.for_each(home_of(c), [&traced](const trace_facts&) { traced = true; });
  return traced;
}

template <class Visit>
void for_each_actor(const scheduler& s, Visit visit) noexcept {
  for (std::size_t i = 0; i < s.worker_count(); ++i) {
    const auto if_actor = [&visit](resident& r) {
      if (static_cast<const resident_type*>(r.type)->describe == &actor_cell::describe)
        visit(static_cast<actor_cell&>(r));
    };
    while (s.at(i).residents.try_for_each(SIZE_MAX, if_actor) < 0) spin_pause();
  }
}

std::string words_for(const actor_cell& c) {
  std::string text;
  if (const char* name = name_of(&c); *name != '\0') text += '"' + std::string{name} + "\" ";
  return text + '(' + std::string{c.how().of->name()} + ')';
}

std::string words_for_sender(const actor_cell* from) {
  if (from != nullptr) return words_for(*from);
  const task* const fiber = running_task_here();
  if (fiber == nullptr) return "a thread";
  const char* const name = name_of(fiber);
  return *name == '\0' ? std::string{"a fiber"} : "fiber \"" + std::string{name} + '"';
}

bool wants(const message_filter& only, const actor_cell* from, const actor_cell& to, const type_info* type) {
  const auto is_one = [&](const any_actor& a) { return a.cell() == from || a.cell() == &to; };
  const auto is_type = [type](const type_info* t) { return *t == *type; };
  return (only.actors.empty() || std::any_of(only.actors.begin(), only.actors.end(), is_one)) &&
         (only.types.empty() || std::any_of(only.types.begin(), only.types.end(), is_type));
}

/// What a message says; its sender may have to wait for room, or it may be gone, when it is shown. Once it is sent,
/// other workers may show what it led to: so times, here and in a recording, are taken before.
struct sight {
  traced_message facts;
  std::chrono::steady_clock::time_point at;
};

std::optional<sight> see(actor_cell& to, message& m, actor_cell* from, const char* sender) {
  const type_info* type = nullptr;
  m.act(m, message_verb::type, &type);
  if (type == nullptr) return std::nullopt;
  bool wanted = false;
  tracing().traces.for_each(home_of(to), [&](const trace_facts& t) { wanted |= wants(t.only, from, to, type); });
  if (!wanted) return std::nullopt;
  sight seen{{.at = {},
              .from = from == nullptr ? any_actor{} : any_actor{*from},
              .sender = sender != nullptr ? sender : words_for_sender(from),
              .to = any_actor{to},
              .receiver = words_for(to),
              .type = type,
              .text = {},
              .outcome = tell_status::ok},
             std::chrono::steady_clock::now()};
  std::ostringstream out;
  m.act(m, message_verb::text, &out);
  seen.facts.text = std::move(out).str();
  if (worker* const here = worker::current(); here != nullptr) observe_message(here, &to, type->name());
  return seen;
}

void show(sight& seen, actor_cell& to, actor_cell* from, tell_status outcome) {
  seen.facts.outcome = outcome;
  tracing().traces.for_each(home_of(to), [&](const trace_facts& t) {
    if (!wants(t.only, from, to, seen.facts.type)) return;
    seen.facts.at = seen.at - t.since;
    t.each(seen.facts);
  });
}

/// Memory may be short, or a message's own text may fail: then it is not shown.
std::optional<sight> try_to_see(actor_cell& to, message& m, actor_cell* from, const char* sender) noexcept {
  try {
    return see(to, m, from, sender);
  } catch (...) {
    return std::nullopt;
  }
}

}  // namespace

tell_status detail::try_post_traced(actor_cell& c, message* m, bool before_others) {
  actor_cell* const from = this_actor();
  std::optional<sight> seen = try_to_see(c, *m, from, nullptr);
  const tell_status outcome = c.try_post_unseen(m, before_others);
  if (seen.has_value()) show(*seen, c, from, outcome);
  return outcome;
}

void detail::trace_timed(actor_cell& c, message& m) noexcept {
  if (std::optional<sight> seen = try_to_see(c, m, nullptr, "a timer")) show(*seen, c, nullptr, tell_status::ok);
}

void detail::trace_from_start(actor_cell& c) noexcept {
  if (is_traced(c)) c.lock.have_no_owner();
}

struct message_trace::state : trace_watch {
  using trace_watch::trace_watch;
};

message_trace::message_trace(runtime& in, message_filter only, function each)
    : message_trace{in.internals(), std::move(only), std::move(each)} {}

message_trace::message_trace(message_filter only, function each)
    : message_trace{
          []() -> scheduler& {
            worker* const here = worker::current();
            if (here == nullptr)
              throw usage_error{"ramie: message_trace: this thread belongs to no runtime; say which one to trace"};
            return *here->owner;
          }(),
          std::move(only), std::move(each)} {}

message_trace::message_trace(scheduler& in, message_filter only, function each)
    : state_{std::make_shared<state>(&in,
                                     trace_facts{std::move(only), std::move(each), std::chrono::steady_clock::now()})} {
  const std::lock_guard guard{tracing().beginning_or_ending};
  tracing().traces.add(state_);
  message_traces.fetch_add(1, std::memory_order_relaxed);
  for_each_actor(in, [](actor_cell& c) { c.lock.have_no_owner(); });
}

message_trace::~message_trace() {
  const std::lock_guard guard{tracing().beginning_or_ending};
  tracing().traces.remove(state_);
  message_traces.fetch_sub(1, std::memory_order_relaxed);
  const worker& any_home = state_->in->at(0);
  bool others = false;
  tracing().traces.for_each(&any_home, [&others](const trace_facts&) { others = true; });
  if (!others) for_each_actor(*state_->in, [](actor_cell& c) { c.lock.may_be_owned(resident::lock_patience); });
}

void message_trace::print(const traced_message& m) { std::fprintf(stderr, "ramie: %s\n", to_string(m).c_str()); }

std::string to_string(const traced_message& m) {
  std::array<char, 32> time{};
  std::snprintf(time.data(), time.size(), "%.3f ms  ", static_cast<double>(m.at.count()) / 1e6);
  std::string line = time.data() + m.sender + " -> " + m.receiver + ": " + std::string{m.type->name()};
  if (!m.text.empty()) line += ' ' + m.text;
  switch (m.outcome) {
    case tell_status::ok: break;
    case tell_status::down: line += "  (has ended)"; break;
    case tell_status::full: line += "  (full)"; break;
    case tell_status::dropped: line += "  (dropped)"; break;
  }
  return line;
}

}  // namespace ramie
