// From events to slices and arrows.
//
// T1 Each worker's events are copied out of its ring, oldest first.
// T2 In the order of time over all workers: a wake, or a spawn, of a task is remembered until the task runs; then an
//    arrow is drawn between the two. The worker where a task ran last shows migrations.
// T3 For each worker alone: what lies between two switches is one slice. A loop's slice is named by the number of new
//    fibers it ran through, unless each of them was recorded.
#include <ramie/inspect/trace.hpp>

#include <ramie/sched/scheduler.hpp>
#include <ramie/worker/resident.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <unordered_map>
#include <vector>

namespace ramie::detail {

namespace {

struct moment {
  std::uint64_t at;
  std::size_t track;
  std::size_t index;  // of the event
};

struct track {
  std::vector<trace_event> events;
  std::unordered_map<std::size_t, std::size_t> came_from;  // by the event that runs a task: its track before
};

class trace_writer {
 public:
  explicit trace_writer(scheduler& s);
  std::string text();

 private:
  void arrows();
  void slices(std::size_t number);
  void slice(std::size_t number, std::uint64_t from, std::uint64_t to, const std::string& name,
             const std::string& args);
  void name_track(std::size_t number, const std::string& name);
  void start_entry() { out_ += out_.back() == '[' ? "\n" : ",\n"; }
  [[nodiscard]] std::string us(std::uint64_t at) const;
  [[nodiscard]] std::string name_of(std::uintptr_t task) const {
    const auto found = names_.find(task);
    return found == names_.end() ? "a fiber" : found->second;
  }
  static std::string who(const trace_event& e, std::uintptr_t task);
  static void quote(std::string& into, std::string_view text);

  scheduler& scheduler_;
  std::vector<track> tracks_;
  std::unordered_map<std::uintptr_t, std::string> names_;  // the last ones known
  std::uint64_t start_ = ~std::uint64_t{0};
  std::uint64_t end_ = 0;
  double cycles_per_us_;
  std::string out_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
};

trace_writer::trace_writer(scheduler& s) : scheduler_{s}, cycles_per_us_{s.recording().cycles_per_us()} {
  s.recording().for_each(
      [](void* opaque, std::size_t number, const observer& seen) {
        auto& self = *static_cast<trace_writer*>(opaque);
        if (self.tracks_.size() <= number) self.tracks_.resize(number + 1);
        if (seen.ring == nullptr) return;
        for (std::uint64_t i = seen.ring->oldest(); i < seen.ring->written(); ++i)
          self.tracks_[number].events.push_back(seen.ring->at(i));
      },
      this);
  for (const track& t : tracks_)
    if (!t.events.empty()) {
      start_ = std::min(start_, t.events.front().at);
      end_ = std::max(end_, t.events.back().at + 1);
    }
}

std::string trace_writer::us(std::uint64_t at) const {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(at - start_) / cycles_per_us_);
  return text;
}

void trace_writer::quote(std::string& into, std::string_view text) {
  into += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') into += '\\';
    into += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  into += '"';
}

std::string trace_writer::who(const trace_event& e, std::uintptr_t task) {
  if (e.name[0] != '\0') return e.name.data();
  std::string kind = "fiber";
  if (e.type == nullptr) {
    kind = "fork job";
  } else if (e.type->kind == task_kind::resident) {
    resident_facts facts;
    if (const auto* type = static_cast<const resident_type*>(e.type); type->describe != nullptr)
      type->describe(nullptr, type, facts);
    kind = std::string{facts.kind} + " " + std::string{facts.type};
  }
  char address[24];
  std::snprintf(address, sizeof address, " 0x%llx", static_cast<unsigned long long>(task));
  return kind + address;
}

void trace_writer::name_track(std::size_t number, const std::string& name) {
  start_entry();
  out_ += "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":" + std::to_string(number) + ",\"args\":{\"name\":";
  quote(out_, name);
  out_ += "}}";
}

void trace_writer::slice(std::size_t number, std::uint64_t from, std::uint64_t to, const std::string& name,
                         const std::string& args) {
  start_entry();
  char duration[32];
  std::snprintf(duration, sizeof duration, "%.3f", static_cast<double>(to - from) / cycles_per_us_);
  out_ += "{\"ph\":\"X\",\"pid\":1,\"tid\":" + std::to_string(number) + ",\"ts\":" + us(from) + ",\"dur\":" + duration +
          ",\"name\":";
  quote(out_, name);
  if (!args.empty()) out_ += ",\"args\":{" + args + "}";
  out_ += "}";
}

// T2.
void trace_writer::arrows() {
  std::vector<moment> order;
  for (std::size_t t = 0; t < tracks_.size(); ++t)
    for (std::size_t i = 0; i < tracks_[t].events.size(); ++i) order.push_back({tracks_[t].events[i].at, t, i});
  std::sort(order.begin(), order.end(), [](const moment& a, const moment& b) {
    return a.at != b.at ? a.at < b.at : a.track != b.track ? a.track < b.track : a.index < b.index;
  });
  std::unordered_map<std::uintptr_t, moment> woken;
  std::unordered_map<std::uintptr_t, std::size_t> ran_on;
  std::uint64_t arrow = 0;
  const auto end_of_arrow = [&](const char* phase, const moment& m) {
    start_entry();
    out_ += std::string{"{\"ph\":\""} + phase +
            "\",\"cat\":\"wake\",\"name\":\"wakes\",\"id\":" + std::to_string(arrow) +
            ",\"pid\":1,\"tid\":" + std::to_string(m.track) + ",\"ts\":" + us(m.at) +
            (*phase == 'f' ? ",\"bp\":\"e\"}" : "}");
  };
  for (const moment& m : order) {
    const trace_event& e = tracks_[m.track].events[m.index];
    if (e.kind == trace_kind::wake || e.kind == trace_kind::spawn) woken[e.task] = m;
    if (const std::uintptr_t named = e.kind == trace_kind::go ? e.from : e.task;
        named != 0 && e.kind != trace_kind::steal)
      names_[named] = who(e, named);
    if ((e.kind != trace_kind::go && e.kind != trace_kind::begin) || e.task == 0) continue;
    if (const auto last = ran_on.find(e.task); last != ran_on.end() && last->second != m.track)
      tracks_[m.track].came_from[m.index] = last->second;
    ran_on[e.task] = m.track;
    if (const auto from = woken.find(e.task); from != woken.end()) {
      ++arrow;
      end_of_arrow("s", from->second);
      end_of_arrow("f", m);
      woken.erase(from);
    }
  }
}

// T3.
void trace_writer::slices(std::size_t number) {
  const track& t = tracks_[number];
  if (t.events.empty()) return;
  const bool outside = number == tracks_.size() - 1;
  std::uint64_t begun = t.events.front().at;
  std::uintptr_t running = 0;
  std::uint32_t dispatches = t.events.front().dispatches;
  std::string came;
  bool woke = false;  // anything was woken since then
  // Up to an event that does not say what ran: a fork job has ended, or only the loop ran.
  const auto close_at = [&](std::uint64_t at, std::uint32_t dispatched, const char* then) {
    const std::uint32_t ran = dispatched - dispatches;
    if (running != 0) slice(number, begun, at, name_of(running), came + "\"then\":\"" + then + "\"");
    else if (at != begun && (ran > 1 || woke))
      slice(number, begun, at, ran > 1 ? std::to_string(ran - 1) + " new fibers" : "scheduler", "");
  };
  for (std::size_t i = 0; i < t.events.size(); ++i) {
    const trace_event& e = t.events[i];
    switch (e.kind) {
      case trace_kind::go: {
        if (e.from != 0) {
          std::string args = came + "\"then\":";
          quote(args, e.reason != nullptr ? std::string{"waits for "} + e.reason : std::string{"yields"});
          if (e.where.line() != 0 && e.reason != nullptr) {
            args += ",\"at\":";
            quote(args, std::string{e.where.file_name()} + ":" + std::to_string(e.where.line()));
          }
          if (running == 0 && e.dispatches - dispatches > 1)
            args += ",\"new fibers before it\":" + std::to_string(e.dispatches - dispatches - 1);
          slice(number, begun, e.at, who(e, e.from), args);
        } else {
          close_at(e.at, e.dispatches, "ends");
        }
        begun = e.at;
        running = e.task;
        dispatches = e.dispatches;
        const auto from = t.came_from.find(i);
        came = from == t.came_from.end() ? "" : "\"came from worker\":" + std::to_string(from->second) + ",";
        break;
      }
      case trace_kind::begin:
        close_at(e.at, e.dispatches, "ends");
        begun = e.at;
        running = e.task;
        dispatches = e.dispatches;
        break;
      case trace_kind::end:
        slice(number, begun, e.at, name_of(running), "\"then\":\"ends\"");
        begun = e.at;
        running = 0;
        dispatches = e.dispatches;
        break;
      case trace_kind::sleep:
        close_at(e.at, e.dispatches, "ends");
        running = 0;
        begun = e.at;
        break;
      case trace_kind::wake_up:
        slice(number, begun, e.at, "sleeps", "");
        begun = e.at;
        dispatches = e.dispatches;
        break;
      case trace_kind::steal:
        start_entry();
        out_ += "{\"ph\":\"i\",\"s\":\"t\",\"name\":\"steals\",\"pid\":1,\"tid\":" + std::to_string(number) +
                ",\"ts\":" + us(e.at) + ",\"args\":{\"from worker\":" + std::to_string(e.task) +
                ",\"items\":" + std::to_string(e.count) + "}}";
        break;
      case trace_kind::message:
        start_entry();
        out_ += "{\"ph\":\"i\",\"s\":\"t\",\"name\":";
        quote(out_, "tells " + std::string{e.reason, e.count});
        out_ += ",\"pid\":1,\"tid\":" + std::to_string(number) + ",\"ts\":" + us(e.at) + ",\"args\":{\"to\":";
        quote(out_, who(e, e.task));
        out_ += "}}";
        break;
      case trace_kind::wake:
        // Other threads have no slices of their own in which an arrow could begin.
        woke = true;
        if (outside) slice(number, e.at, e.at + 1, "wakes " + who(e, e.task), "");
        break;
      case trace_kind::spawn: woke = true; continue;
    }
    if (e.kind != trace_kind::wake && e.kind != trace_kind::steal && e.kind != trace_kind::message) woke = false;
  }
  if (outside || t.events.back().kind == trace_kind::sleep) return;
  close_at(end_, t.events.back().dispatches, "goes on");
}

std::string trace_writer::text() {
  start_entry();
  out_ += "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":";
  quote(out_, scheduler_.options().name);
  out_ += "}}";
  for (std::size_t i = 0; i < tracks_.size(); ++i)
    name_track(i, i + 1 == tracks_.size() ? "other threads" : scheduler_.options().name + "/" + std::to_string(i));
  arrows();
  for (std::size_t i = 0; i < tracks_.size(); ++i) slices(i);
  out_ += "\n]}\n";
  return std::move(out_);
}

}  // namespace

std::string trace_as_json(scheduler& s) { return trace_writer{s}.text(); }

}  // namespace ramie::detail
