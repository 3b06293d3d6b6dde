// A dump, from top to bottom: runtimes with their workers, fibers by a walk over all stacks, idle actors by the lists
// of residents, a count of waits by place, and what components show. One at a time; its larger tables are static, so
// that it fits the stack of a small fiber or a signal handler. What may be read, and how: dump_facts.hpp.
#include <ramie/inspect/dump.hpp>

#include <ramie/inspect/describe.hpp>
#include <ramie/inspect/dump_facts.hpp>
#include <ramie/inspect/dump_internal.hpp>
#include <ramie/inspect/library_code.hpp>
#include <ramie/inspect/status.hpp>
#include <ramie/inspect/symbols.hpp>
#include <ramie/inspect/text_writer.hpp>
#include <ramie/sched/environment.hpp>
#include <ramie/sched/live_schedulers.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/stack/paint.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/worker/stack_use_table.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace ramie::detail {

namespace {

constexpr std::size_t known_most = workers_most + spares_most;  // the workers of one runtime at most
// Guesses: a page of output, not of everything, and tables that need no memory of the process.
constexpr std::size_t samples_most = 64;
constexpr std::size_t places_most = 64;
constexpr std::size_t actors_most = 4096;
constexpr std::size_t actors_counted_most = 100'000;  // for each worker

struct known_worker {
  const worker* who;
  const stack* running;
  std::array<char, 24> label;
  std::size_t sampled;  // samples_most: not sampled
};

struct wait_place {
  const char* reason;
  const char* file;
  std::uint32_t line;
  std::uint64_t count;
};

struct tables {
  std::array<known_worker, known_most> workers;
  std::size_t worker_count;
  std::array<sample, samples_most> samples;
  std::size_t sample_count;
  std::array<wait_place, places_most> places;
  std::size_t place_count;
  std::array<const void*, actors_most> actors;
  fiber_facts fiber;
  task_facts other;
  std::array<char, 1024> program;  // its path
  alignas(symbol_finder) std::array<std::byte, sizeof(symbol_finder)> symbols;
};
tables all;
std::atomic_flag under_way = ATOMIC_FLAG_INIT;

class dumping {
 public:
  dumping(int fd, const dump_options& options) noexcept
      : options_{options}, out_{fd, options.bytes, options.seconds}, now_ns_{now_ns()} {
    all.worker_count = all.sample_count = all.place_count = 0;
    const ssize_t size = ::readlink("/proc/self/exe", all.program.data(), all.program.size() - 1);
    all.program[size > 0 ? static_cast<std::size_t>(size) : 0] = '\0';
    symbols_ = ::new (all.symbols.data()) symbol_finder;
  }
  ~dumping() { symbols_->~symbol_finder(); }
  dumping(const dumping&) = delete;
  dumping& operator=(const dumping&) = delete;

  void everything(const frame_registers& own) noexcept;

 private:
  void runtime(std::size_t number, scheduler& s, const frame_registers& own) noexcept;
  void worker_line(worker& w, const frame_registers& own) noexcept;
  void neighbours(scheduler& s, const char* what, std::uint16_t cpu_place::* group) noexcept;
  void fibers() noexcept;
  void fiber(const inspection& during, stack& s) noexcept;
  void state_of(const fiber_facts& f) noexcept;
  void caller_of(const fiber_facts& f) noexcept;
  void function(const code_place& place) noexcept;
  void relations_of(const fiber_facts& f) noexcept;
  void frames(const std::uintptr_t* pcs, std::size_t count) noexcept;
  void idle_actors(scheduler& s) noexcept;
  void places() noexcept;
  void stack_uses() noexcept;
  void count_place(const fiber_facts& f) noexcept;
  void title(const task_facts& t) noexcept;
  void mentioned(const void* task_address) noexcept;
  void occupant_of(const stack* s) noexcept;
  static const known_worker* worker_at(const worker_base* w) noexcept;
  static const known_worker* runner_of(const stack& s) noexcept;

  const dump_options options_;
  text_writer out_;
  const std::int64_t now_ns_;
  symbol_finder* symbols_;
  std::size_t fibers_ = 0, waiting_ = 0, actors_ = 0;
};

void dumping::everything(const frame_registers& own) noexcept {
  out_ << "ramie: what process " << std::int64_t{::getpid()} << " is doing\n";
  {
    const scheduler_visit visit;
    for (std::size_t i = 0; i < schedulers_listed_most; ++i)
      if (scheduler* s = visit.at(i); s != nullptr) runtime(i, *s, own);
  }
  fibers();
  {
    const scheduler_visit visit;
    for (std::size_t i = 0; i < schedulers_listed_most; ++i)
      if (scheduler* s = visit.at(i); s != nullptr) idle_actors(*s);
  }
  places();
  dump_status(out_);
  stack_uses();
  if (out_.cut()) out_ << "\n";
  out_ << "ramie: end\n";
}

// ---- runtimes ------------------------------------------------------------------------------------------------------

void dumping::runtime(std::size_t, scheduler& s, const frame_registers& own) noexcept {
  out_ << "\nruntime ";
  out_.quoted(s.options().name.c_str()) << ": " << std::uint64_t{s.live()} << " live fibers and actors, "
                                        << std::uint64_t{s.all().injected.size()} << " in the injection queue";
  const blocking_pool::load calls = s.blocking().about();
  if (calls.under_way + calls.waiting != 0)
    out_ << "; blocking calls: " << std::uint64_t{calls.under_way} << " under way, " << std::uint64_t{calls.waiting}
         << " waiting";
  if (const file_facts files = s.events.files(); files.how == file_facts::by::ring) {
    out_ << "; files by io_uring";
  } else if (files.how == file_facts::by::helpers) {
    // Not strerror, which may allocate.
    const char* const why = ::strerrordesc_np(files.refused);
    out_ << "; files by helper threads, for io_uring was refused: " << (why == nullptr ? "unknown error" : why);
  }
  if (s.stopping()) out_ << "; shutting down";
  out_ << "\n";
  const std::size_t n = s.worker_count();
  for (std::size_t i = 0; i < n && !out_.over(); ++i) worker_line(s.at(i), own);
  if (!s.all().near_first) return;
  neighbours(s, "core", &cpu_place::core);
  neighbours(s, "cache", &cpu_place::cache);
  if (s.all().map.nodes() > 1) neighbours(s, "node", &cpu_place::node);
}

/// "share a cache: 0 1 2 | 3 4 5": workers by where they were last seen.
void dumping::neighbours(scheduler& s, const char* what, std::uint16_t cpu_place::* group) noexcept {
  const std::size_t n = s.worker_count();
  const auto group_of = [&](std::size_t i) {
    const worker& w = s.at(i);
    return w.on_duty.load(std::memory_order_acquire) ? w.last_place().*group : cpu_place::nowhere;
  };
  out_ << "  share a " << what << ":";
  bool first = true;
  for (std::size_t i = 0; i < n && !out_.over(); ++i) {
    const std::uint16_t mine = group_of(i);
    bool seen = mine == cpu_place::nowhere;
    for (std::size_t j = 0; j < i && !seen; ++j) seen = group_of(j) == mine;
    if (seen) continue;
    if (!first) out_ << " |";
    first = false;
    for (std::size_t j = i; j < n; ++j)
      if (group_of(j) == mine) out_ << " " << std::uint64_t{j};
  }
  out_ << "\n";
}

void dumping::worker_line(worker& w, const frame_registers& own) noexcept {
  if (!w.on_duty.load(std::memory_order_acquire)) return;  // a spare that has nothing to do
  if (all.worker_count == known_most) return;
  known_worker& known = all.workers[all.worker_count++];
  known = {&w, peek(w.running), {}, samples_most};
  if (!is_made(known.running)) known.running = nullptr;  // made just now, and not to be read yet
  // The name of its thread.
  const std::string& runtime_name = w.owner->options().name;
  std::size_t size = std::min<std::size_t>(runtime_name.size(), 10);
  std::memcpy(known.label.data(), runtime_name.data(), size);
  known.label[size++] = '/';
  std::array<char, 10> digits;
  std::size_t d = 0;
  for (std::uint32_t number = w.number; number != 0 || d == 0; number /= 10)
    digits[d++] = static_cast<char>('0' + number % 10);
  while (d != 0) known.label[size++] = digits[--d];

  if (known.running != nullptr && !w.idle.load(std::memory_order_acquire) && all.sample_count < samples_most) {
    sample& into = all.samples[all.sample_count];
    if (&w == worker::current() ? take_sample(w, own, options_.frames, into)
                                : ask_for_sample(w, options_.frames, into)) {
      known.running = into.on;
      known.sampled = all.sample_count++;
    }
  }
  const void* occupant = known.running == nullptr ? nullptr : known.running->occupant.load(std::memory_order_acquire);
  out_ << "  worker " << known.label.data() << " (thread " << w.thread_id.load(std::memory_order_relaxed) << "): ";
  if (w.spare) out_ << "a spare, ";
  if (w.idle.load(std::memory_order_acquire)) out_ << "sleeps";
  else if (occupant == nullptr) out_ << "looks for work";
  else {
    out_ << "runs ";
    mentioned(occupant);
  }
  out_ << "; queues: " << std::uint64_t{w.ready.size()} << " ready, " << std::uint64_t{w.spawned.size()} << " new";
  const fork_slot* top = w.top.load_acquire();
  const fork_slot* bottom = w.bottom.load_acquire();
  out_ << ", " << std::uint64_t{bottom > top ? static_cast<std::size_t>(bottom - top) : 0} << " fork jobs";
  if (!w.sent.empty()) out_ << ", something in its inbox";
  if (const std::int64_t next = w.timers.next_ns(); next != timer_queue::never) {
    out_ << ", a timer ";
    if (next <= now_ns_) out_ << "due";
    else {
      out_ << "due in ";
      out_.duration(next - now_ns_);
    }
  }
  out_ << "; " << w.dispatches.value() << " dispatches\n";
}

// ---- fibers --------------------------------------------------------------------------------------------------------

const known_worker* dumping::worker_at(const worker_base* w) noexcept {
  for (std::size_t i = 0; i < all.worker_count; ++i)
    if (all.workers[i].who == w) return &all.workers[i];
  return nullptr;
}

const known_worker* dumping::runner_of(const stack& s) noexcept {
  for (std::size_t i = 0; i < all.worker_count; ++i)
    if (all.workers[i].running == &s) return &all.workers[i];
  return nullptr;
}

void dumping::fibers() noexcept {
  out_ << "\n";
  struct look {
    dumping* self;
    inspection during{};
  } with{this};
  for_each_stack(
      [](void* opaque, stack& s) {
        const auto& by = *static_cast<const look*>(opaque);
        by.self->fiber(by.during, s);
      },
      &with);
  if (fibers_ > options_.fibers) out_ << "and " << std::uint64_t{fibers_ - options_.fibers} << " more fibers\n";
  if (fibers_ == 0) out_ << "no running or waiting fibers\n";
}

void dumping::fiber(const inspection& during, stack& s) noexcept {
  if (out_.over()) return;
  const known_worker* runner = runner_of(s);
  const bool shown = fibers_ < options_.fibers;
  fiber_facts& f = all.fiber;
  f = {};
  if (!look_at_stack(during, s, runner != nullptr, shown ? options_.frames : 0, f)) return;
  ++fibers_;
  if (f.state == fiber_facts::doing::waits) count_place(f);
  if (!shown) return;
  title(f.who);
  out_ << ": ";
  state_of(f);
  caller_of(f);
  if (runner != nullptr) out_ << " on " << runner->label.data();
  out_ << "\n";
  relations_of(f);
  if (f.who.measures_stack)
    out_ << "    has used " << std::uint64_t{painted_depth(s)} << " of " << std::uint64_t{usable_size(s)}
         << " bytes of its stack\n";
  if (runner != nullptr && runner->sampled != samples_most) {
    const sample& seen = all.samples[runner->sampled];
    if (seen.on == &s && seen.occupant == f.who.id) frames(seen.pcs.data(), seen.frames);
  } else {
    frames(f.pcs.data(), f.frames);
  }
}

void dumping::title(const task_facts& t) noexcept { write_title(out_, t); }

void dumping::mentioned(const void* task_address) noexcept {
  look_at_task(task_address, all.other);
  title(all.other);
}

void dumping::occupant_of(const stack* s) noexcept {
  const copied<stack> there(s);
  if (!there) out_ << "an unknown fiber";
  else if (there->top == nullptr) out_ << "a plain thread";
  else if (const void* occupant = there->occupant.load(std::memory_order_relaxed); occupant != nullptr)
    mentioned(occupant);
  else out_ << "no fiber any more";
}

void dumping::state_of(const fiber_facts& f) noexcept {
  switch (f.state) {
    case fiber_facts::doing::runs: out_ << "runs"; return;
    case fiber_facts::doing::is_ready: out_ << "is ready to run"; return;
    case fiber_facts::doing::is_woken: out_ << "begins to wait, or is being woken"; return;
    case fiber_facts::doing::waits: break;
  }
  out_ << "waits for " << f.reason;
  if (f.fd >= 0) write_descriptor(out_, f.fd, f.writes);
  if (f.since_ns != 0) {
    out_ << " (";
    out_.duration(now_ns_ - f.since_ns);
    out_ << ")";
  }
  if (f.line != 0) out_ << ", at " << f.file << ":" << f.line << " in " << f.function;
  if (f.holder != nullptr) {
    out_ << "\n    which is held by ";
    if ((reinterpret_cast<std::uintptr_t>(f.holder) & 1) != 0) out_ << "a plain thread";
    else occupant_of(static_cast<const stack*>(f.holder));
  }
}

/// Where the user's code waits, if the wait itself cannot tell: a lock_guard is not given its caller's place.
void dumping::caller_of(const fiber_facts& f) noexcept {
  if (f.state != fiber_facts::doing::waits || (f.line != 0 && !is_of_library(f.file))) return;
  for (std::size_t i = 0; i < f.frames; ++i) {
    const code_place place = symbols_->find(f.pcs[i]);
    if (place.function == nullptr || is_library_function(place.function)) continue;
    out_ << ", called by ";
    function(place);
    return;
  }
}

void dumping::function(const code_place& place) noexcept { write_function(out_, place, options_.demangle); }

void dumping::relations_of(const fiber_facts& f) noexcept {
  const task_facts& t = f.who;
  if (!t.known) return;
  if (t.kind == task_kind::resident) {
    out_ << "    messages in the mailbox: " << t.resident.mail << "\n";
    if (t.resident.supervisor != nullptr) {
      out_ << "    supervised by ";
      mentioned(t.resident.supervisor);
      out_ << "\n";
    }
  }
  if (t.stopping) out_ << "    asked to stop\n";
  if (t.strand) {
    out_ << "    a child of ";
    mentioned(t.parent);
    out_ << "\n";
  }
  if (t.spawned_by != nullptr) out_ << "    spawned by fiber " << t.spawned_by << "\n";
  if (t.joined_by != nullptr) {
    out_ << "    joined by ";
    occupant_of(t.joined_by);
    out_ << "\n";
  }
  if (const known_worker* home = worker_at(t.home); home != nullptr && f.state != fiber_facts::doing::runs)
    out_ << "    last ran on " << home->label.data() << "\n";
}

void dumping::frames(const std::uintptr_t* pcs, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const code_place place = symbols_->find(pcs[i]);
    out_ << "    #" << std::uint64_t{i} << (i < 10 ? "  " : " ");
    if (place.function != nullptr) {
      function(place);
      out_ << " ";
    }
    write_offset(out_, place, all.program.data());
    out_ << "\n";
  }
}

// ---- actors and counts ---------------------------------------------------------------------------------------------

void dumping::idle_actors(scheduler& s) noexcept {
  const std::size_t n = s.worker_count();
  std::uint64_t others = 0;
  for (std::size_t i = 0; i < n && !out_.over(); ++i) {
    std::size_t listed = 0;
    const std::size_t listed_most = std::min(actors_most, options_.actors - std::min(options_.actors, actors_));
    const std::ptrdiff_t count = s.at(i).residents.try_for_each(actors_counted_most, [&](const resident& r) {
      if (listed < listed_most) all.actors[listed++] = &r;
    });
    if (count < 0) {
      out_ << "(the actors made on worker " << std::uint64_t{i} << " cannot be listed just now)\n";
      continue;
    }
    others += static_cast<std::uint64_t>(count) - listed;
    for (std::size_t at = 0; at < listed; ++at) {
      look_at_task(all.actors[at], all.other);
      ++actors_;
      const task_facts& t = all.other;
      if (!t.known || t.kind != task_kind::resident || t.on_stack) continue;
      title(t);
      out_ << ": " << t.resident.state << "; messages in the mailbox: " << t.resident.mail;
      if (const void* above = t.resident.supervisor; above != nullptr) {
        out_ << "; supervised by ";
        mentioned(above);
      }
      out_ << "\n";
    }
  }
  if (others != 0) out_ << "and " << others << " more actors\n";
}

void dumping::count_place(const fiber_facts& f) noexcept {
  ++waiting_;
  for (std::size_t i = 0; i < all.place_count; ++i) {
    wait_place& p = all.places[i];
    if (p.line == f.line && p.reason == f.reason && p.file == f.file) {
      ++p.count;
      return;
    }
  }
  if (all.place_count != places_most) all.places[all.place_count++] = {f.reason, f.file, f.line, 1};
}

void dumping::places() noexcept {
  out_ << "\n"
       << std::uint64_t{fibers_} << " fibers have begun and not ended; " << std::uint64_t{waiting_}
       << " of them wait:\n";
  std::uint64_t elsewhere = waiting_;
  std::sort(all.places.begin(), all.places.begin() + static_cast<std::ptrdiff_t>(all.place_count),
            [](const wait_place& a, const wait_place& b) { return a.count > b.count; });
  for (std::size_t i = 0; i < all.place_count; ++i) {
    const wait_place& p = all.places[i];
    elsewhere -= p.count;
    out_ << "  " << p.count << " for " << p.reason;
    if (p.line != 0) out_ << ", at " << p.file << ":" << p.line;
    out_ << "\n";
  }
  if (elsewhere != 0) out_ << "  " << elsewhere << " elsewhere\n";
}

void dumping::stack_uses() noexcept {
  bool first = true;
  struct both {
    dumping& self;
    bool& first;
  } context{*this, first};
  for_each_stack_use(
      [](void* it, const stack_use_row& row) {
        auto& [self, is_first] = *static_cast<both*>(it);
        text_writer& out = self.out_;
        if (std::exchange(is_first, false)) out << "\nmaximum stack use in bytes, of those that have ended\n";
        out << "  " << std::uint64_t{row.most.load(std::memory_order_relaxed)} << " of "
            << std::uint64_t{row.usable.load(std::memory_order_relaxed)} << ": ";
        if (row.name[0] != '\0') {
          out.quoted(row.name.data());
        } else if (row.type == nullptr) {
          out << "others";
        } else if (row.type->kind == task_kind::resident) {
          resident_facts facts;
          const auto* known = static_cast<const resident_type*>(row.type);
          if (known->describe != nullptr) known->describe(nullptr, known, facts);
          out << facts.kind << " " << facts.type;
        } else {
          const code_place place = self.symbols_->find(reinterpret_cast<std::uintptr_t>(row.type->run));
          out << (place.function == nullptr ? "no name" : place.function);
        }
        out << ", " << row.measured.load(std::memory_order_relaxed) << " samples\n";
      },
      &context);
}

}  // namespace

bool dump_from(int fd, const dump_options& options, const frame_registers& from) noexcept {
  if (under_way.test_and_set(std::memory_order_acquire)) return false;
  {
    dumping all_of_it{fd, options};
    all_of_it.everything(from);
  }
  under_way.clear(std::memory_order_release);
  return true;
}

}  // namespace ramie::detail
