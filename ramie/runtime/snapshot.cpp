// A snapshot is made in two walks. The first looks at every stack, without its calls, counts, and remembers the stacks
// of the fibers that are to be listed. The second looks at those again and makes the strings. A stack may have another
// fiber by then; the list is of what is there at the second look. (Stacks' descriptors stay valid: stack/pool.hpp.)
// What may be read, and how: inspect/dump_facts.hpp.
#include <ramie/runtime/snapshot.hpp>

#include <ramie/inspect/describe.hpp>
#include <ramie/inspect/dump_facts.hpp>
#include <ramie/inspect/library_code.hpp>
#include <ramie/inspect/symbols.hpp>
#include <ramie/runtime/runtime.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/stack/pool.hpp>

#include <time.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace ramie {

namespace {

using detail::fiber_facts;
using detail::task_facts;

// Guesses: more than a page shows.
constexpr std::size_t places_most = 100;
constexpr std::size_t actors_seen_most = 4096;     // of each worker; its list is locked meanwhile
constexpr std::size_t looks_at_calls_most = 1000;  // for places in libraries; each takes some microseconds
constexpr std::size_t functions_most = 20'000;     // that are remembered
constexpr std::size_t supervisors_most = 1000;     // that are added to the list of actors

std::uintptr_t id_of(const void* task) noexcept { return reinterpret_cast<std::uintptr_t>(task); }

/// Of a thread of this process. 0 if there is none.
std::int64_t processor_time_ns(clockid_t of = CLOCK_THREAD_CPUTIME_ID) noexcept {
  timespec t{};
  if (::clock_gettime(of, &t) != 0) return 0;
  return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

/// As pthread_getcpuclockid makes it of a thread's number.
clockid_t clock_of(int thread) noexcept { return static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6U); }

struct function_name {
  std::string text;  // empty: not known
  bool is_library = false;
};

/// Names by address, found once: to look one up takes a walk over the program's symbols. One that is loaded where
/// another library was before has that one's names.
class function_names {
 public:
  const function_name& at(std::uintptr_t pc, detail::symbol_finder& symbols) {
    if (const auto known = names_.find(pc); known != names_.end()) return known->second;
    if (names_.size() == functions_most) names_.clear();
    const detail::code_place place = symbols.find(pc);
    if (place.function == nullptr) return names_[pc];
    return names_[pc] = {detail::readable_function(place.function), detail::is_library_function(place.function)};
  }

 private:
  std::unordered_map<std::uintptr_t, function_name> names_;
};

std::mutex lock;  // of what follows; nobody suspends under it
function_names known_functions;

/// What the second walk looks at again.
struct chosen {
  std::int64_t since_ns;
  detail::stack* on;
};

class taking {
 public:
  taking(detail::scheduler& of, const snapshot_options& options, runtime_snapshot& into)
      : of_{of}, options_{options}, into_{into} {}

  void workers();
  void fibers();
  void actors();

 private:
  struct place_key {
    const char* reason;
    const char* file;
    std::uint32_t line;
    std::uintptr_t caller;  // if the place is in a library
    bool operator==(const place_key&) const = default;
  };
  struct hash {
    std::size_t operator()(const place_key& k) const noexcept {
      return std::hash<const void*>{}(k.file) * 31 + std::hash<const void*>{}(k.reason) + k.line + k.caller;
    }
  };

  void count(detail::stack& s);
  void list(detail::stack& s, bool followed);
  [[nodiscard]] bool is_of_runtime(const task_facts& t) const noexcept;
  [[nodiscard]] int number_of(const detail::worker_base* w) const noexcept;
  [[nodiscard]] bool runs_now(const detail::stack& s) const noexcept;
  bool look(detail::stack& s, std::size_t frames);  // into found_; false if there is no fiber of this runtime
  [[nodiscard]] bool is_in_library() const noexcept { return found_.line == 0 || detail::is_of_library(found_.file); }
  void count_place(detail::stack& s, std::int64_t waits_ns);
  [[nodiscard]] const std::string* user_function(std::uintptr_t& at);
  void add_actor(const task_facts& t);

  detail::scheduler& of_;
  const snapshot_options& options_;
  runtime_snapshot& into_;
  std::int64_t now_ns_ = detail::now_ns();
  detail::inspection during_{};
  fiber_facts found_;
  detail::symbol_finder symbols_;
  std::vector<const detail::stack*> running_;
  std::vector<chosen> busy_, waiting_;  // waiting_: a heap, the latest to wait at its front
  detail::stack* followed_ = nullptr;
  std::size_t looks_at_calls_ = 0;
  std::unordered_map<place_key, place_count, hash> places_;
};

// ---- workers -------------------------------------------------------------------------------------------------------

std::string title_of(const task_facts& t) {
  if (t.name[0] != '\0') return t.name.data();
  if (t.kind == detail::task_kind::resident) return std::string{t.resident.type};
  return t.strand ? "child" : "fiber";
}

void taking::workers() {
  task_facts who;
  for (std::size_t i = 0; i < of_.worker_count(); ++i) {
    detail::worker& w = of_.at(i);
    running_.push_back(detail::peek(w.running));
    if (!w.on_duty.load(std::memory_order_acquire)) continue;
    worker_view& v = into_.workers.emplace_back();
    v.number = static_cast<int>(i);
    v.thread = w.thread_id.load(std::memory_order_relaxed);
    v.processor_ns = v.thread == 0 ? 0 : processor_time_ns(clock_of(v.thread));
    v.timers = w.timers.size();
    if (const std::int64_t next = w.timers.next_ns(); next != detail::timer_queue::never)
      v.next_timer_ns = std::max<std::int64_t>(next - now_ns_, 0);
    const detail::fork_slot* top = w.top.load_acquire();
    const detail::fork_slot* bottom = w.bottom.load_acquire();
    v.fork_jobs = bottom > top ? static_cast<std::size_t>(bottom - top) : 0;
    if (w.idle.load(std::memory_order_acquire)) continue;
    v.state = worker_view::doing::searches;
    const detail::stack* on = running_.back();
    if (!detail::is_made(on)) continue;
    const void* occupant = on->occupant.load(std::memory_order_acquire);
    if (occupant == nullptr) continue;
    detail::look_at_task(occupant, who);
    v.state = worker_view::doing::runs;
    v.runs = id_of(occupant);
    v.title = who.known ? title_of(who) : "fiber";
  }
}

bool taking::runs_now(const detail::stack& s) const noexcept {
  return std::find(running_.begin(), running_.end(), &s) != running_.end();
}

int taking::number_of(const detail::worker_base* w) const noexcept {
  for (std::size_t i = 0; i < of_.worker_count(); ++i)
    if (&of_.at(i) == w) return static_cast<int>(i);
  return -1;
}

bool taking::is_of_runtime(const task_facts& t) const noexcept { return t.known && number_of(t.home) >= 0; }

// ---- fibers --------------------------------------------------------------------------------------------------------

bool taking::look(detail::stack& s, std::size_t frames) {
  found_ = {};
  return detail::look_at_stack(during_, s, runs_now(s), frames, found_) && is_of_runtime(found_.who);
}

/// Null if the wait itself tells where the user's code waits. A lock_guard, for one, is not given its caller's place.
const std::string* taking::user_function(std::uintptr_t& at) {
  if (!is_in_library()) return nullptr;
  for (std::size_t i = 0; i < found_.frames; ++i)
    if (const function_name& f = known_functions.at(found_.pcs[i], symbols_); !f.text.empty() && !f.is_library) {
      at = found_.pcs[i];
      return &f.text;
    }
  return nullptr;
}

/// First walk.
void taking::count(detail::stack& s) {
  constexpr auto later = [](const chosen& a, const chosen& b) { return a.since_ns < b.since_ns; };
  if (!look(s, 0)) return;
  ++into_.begun;
  if (options_.follow != 0 && id_of(found_.who.id) == options_.follow) followed_ = &s;
  if (found_.state != fiber_facts::doing::waits) {
    ++(found_.state == fiber_facts::doing::runs ? into_.running : into_.ready);
    if (busy_.size() < options_.fibers) busy_.push_back({0, &s});
    return;
  }
  ++into_.waiting;
  const std::int64_t since = found_.since_ns == 0 ? now_ns_ : found_.since_ns;
  count_place(s, now_ns_ - since);
  if (options_.fibers == 0) return;
  if (waiting_.size() == options_.fibers) {
    if (since >= waiting_.front().since_ns) return;
    std::pop_heap(waiting_.begin(), waiting_.end(), later);
    waiting_.pop_back();
  }
  waiting_.push_back({since, &s});
  std::push_heap(waiting_.begin(), waiting_.end(), later);
}

void taking::count_place(detail::stack& s, std::int64_t waits_ns) {
  place_key key{found_.reason, found_.file, found_.line, 0};
  const std::string* caller = nullptr;
  if (is_in_library() && looks_at_calls_ < looks_at_calls_most) {
    ++looks_at_calls_;
    if (look(s, found_.pcs.size()) && found_.reason == key.reason && found_.file == key.file)
      caller = user_function(key.caller);
  }
  place_count& group = places_[key];
  if (group.count++ == 0) {
    if (caller == nullptr) group.where = {key.reason, key.file, {}, key.line};
    else group.where = {key.reason, {}, *caller, 0};
  }
  group.longest_ns = std::max(group.longest_ns, waits_ns);
}

std::uintptr_t occupant_of(const void* stack_address) noexcept {
  if ((id_of(stack_address) & 1) != 0) return 0;  // a plain thread is marked by an odd address
  const detail::copied<detail::stack> there(stack_address);
  return there ? id_of(there->occupant.load(std::memory_order_relaxed)) : 0;
}

/// Second walk.
void taking::list(detail::stack& s, bool followed) {
  if ((!followed && &s == followed_) || !look(s, followed ? found_.pcs.size() : 0)) return;
  // Calls are worth their time only where they are shown, or say what the wait does not.
  if (!followed && found_.state == fiber_facts::doing::waits && is_in_library() && !look(s, found_.pcs.size())) return;
  const task_facts& t = found_.who;
  fiber_view& v = into_.fibers.emplace_back();
  v.id = id_of(t.id);
  v.name = t.name.data();
  v.is_actor = t.kind == detail::task_kind::resident;
  v.kind = v.is_actor ? std::string{t.resident.type} : t.strand ? "child" : "fiber";
  v.is_stopping = t.stopping;
  v.worker = number_of(t.home);
  v.spawned_by = id_of(t.strand ? t.parent : t.spawned_by);
  v.joined_by = t.joined_by == nullptr ? 0 : occupant_of(t.joined_by);
  switch (found_.state) {
    case fiber_facts::doing::runs: v.state = fiber_view::doing::runs; break;
    case fiber_facts::doing::is_ready: v.state = fiber_view::doing::is_ready; break;
    case fiber_facts::doing::is_woken: v.state = fiber_view::doing::changes; break;
    case fiber_facts::doing::waits:
      if (std::uintptr_t at = 0; const std::string* caller = user_function(at))
        v.where = {found_.reason, {}, *caller, 0};
      else v.where = {found_.reason, found_.file, found_.function, found_.line};
      if (found_.since_ns != 0) v.waits_ns = std::max<std::int64_t>(now_ns_ - found_.since_ns, 0);
      if (found_.holder != nullptr) v.held_by = occupant_of(found_.holder);
      v.fd = found_.fd;
      v.writes = found_.writes;
      if (v.fd >= 0) v.peer = detail::address_of_descriptor(v.fd);
      break;
  }
  if (!followed) return;
  for (std::size_t i = 0; i < std::min(found_.frames, options_.calls); ++i) {
    const std::string& name = known_functions.at(found_.pcs[i], symbols_).text;
    v.calls.push_back(name.empty() ? "?" : name);
  }
}

void taking::fibers() {
  detail::for_each_stack([](void* self, detail::stack& s) { static_cast<taking*>(self)->count(s); }, this);
  if (followed_ != nullptr) list(*followed_, true);
  std::sort(waiting_.begin(), waiting_.end(), [](const chosen& a, const chosen& b) { return a.since_ns < b.since_ns; });
  for (const auto* all : {&busy_, &waiting_})
    for (const chosen& c : *all)
      if (into_.fibers.size() < options_.fibers) list(*c.on, false);

  std::vector<std::pair<place_key, place_count>> groups{places_.begin(), places_.end()};
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  if (groups.size() > places_most) groups.resize(places_most);
  for (auto& [key, group] : groups) into_.places.push_back(std::move(group));
}

// ---- actors --------------------------------------------------------------------------------------------------------

void taking::add_actor(const task_facts& t) {
  into_.actors.push_back({id_of(t.id), t.name.data(), std::string{t.resident.type}, t.resident.state, t.resident.mail,
                          id_of(t.resident.supervisor)});
}

void taking::actors() {
  std::vector<const detail::resident*> seen;
  for (std::size_t i = 0; i < of_.worker_count(); ++i) {
    detail::resident_list& made_here = of_.at(i).residents;
    into_.all_actors += made_here.size();
    seen.reserve(seen.size() + actors_seen_most);
    made_here.try_for_each(actors_seen_most, [&](const detail::resident& r) { seen.push_back(&r); });
  }
  task_facts t;
  const auto is_actor = [&] { return t.known && t.kind == detail::task_kind::resident; };
  struct with_mail {
    std::uint64_t mail;
    const void* who;
  };
  std::vector<with_mail> all;
  all.reserve(seen.size());
  for (const detail::resident* r : seen) {
    detail::look_at_task(r, t);
    if (is_actor()) all.push_back({t.resident.mail, r});
  }
  const std::size_t n = std::min(all.size(), options_.actors);
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n), all.end(),
                    [&](const with_mail& a, const with_mail& b) {
                      const bool first = id_of(a.who) == options_.follow, second = id_of(b.who) == options_.follow;
                      return first != second ? first : a.mail > b.mail;
                    });
  std::unordered_map<std::uintptr_t, bool> listed;
  for (std::size_t i = 0; i < n; ++i) {
    detail::look_at_task(all[i].who, t);
    if (is_actor() && listed.emplace(id_of(t.id), true).second) add_actor(t);
  }
  for (std::size_t i = 0; i < into_.actors.size() && i < n + supervisors_most; ++i) {
    const std::uintptr_t above = into_.actors[i].supervisor;
    if (above == 0 || !listed.emplace(above, true).second) continue;
    detail::look_at_task(reinterpret_cast<const void*>(above), t);
    if (is_actor()) add_actor(t);
  }
}

}  // namespace

runtime_snapshot snapshot(runtime& of, const snapshot_options& options) {
  const std::lock_guard one_at_a_time{lock};
  const std::int64_t before_ns = processor_time_ns();
  runtime_snapshot all;
  all.statistics = of.statistics();
  const auto take = std::make_unique<taking>(of.internals(), options, all);  // large, for a fiber's stack
  take->workers();
  take->fibers();
  take->actors();
  // A spare may have come or gone between the two.
  std::erase_if(all.workers, [&](const worker_view& v) {
    return std::none_of(all.statistics.workers.begin(), all.statistics.workers.end(),
                        [&](const worker_statistics& w) { return w.number == v.number; });
  });
  all.cost_ns = processor_time_ns() - before_ns;
  return all;
}

}  // namespace ramie
