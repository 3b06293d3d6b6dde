#include "inspector/inspected.hpp"

#include <array>
#include <charconv>
#include <concepts>
#include <utility>

namespace ramie::http {

void add_json(std::string& to, std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  to += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') (to += '\\') += c;
    else if (byte < 0x20 || byte == 0x7f) ((to += "\\u00") += digits[byte >> 4]) += digits[byte & 15];
    else if (byte < 0x80) to += c;
    else to += '?';  // names of any bytes; the answer has to be UTF-8
  }
  to += '"';
}

namespace {

/// Puts commas between members.
class object {
 public:
  object(std::string& to, char open, char close) : to_{to}, close_{close} { to_ += open; }
  object(const object&) = delete;
  object& operator=(const object&) = delete;
  ~object() { to_ += close_; }

  std::string& item() {
    if (!std::exchange(first_, false)) to_ += ',';
    return to_;
  }
  std::string& member(std::string_view name) {
    add_json(item(), name);
    return to_ += ':';
  }
  object& text(std::string_view name, std::string_view value) {
    if (!value.empty()) add_json(member(name), value);
    return *this;
  }
  object& number(std::string_view name, std::integral auto value) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    member(name).append(digits.data(), end);
    return *this;
  }
  /// Addresses are strings, since numbers of JavaScript have 53 bits.
  object& id(std::string_view name, std::uintptr_t value) {
    if (value == 0) return *this;
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
    member(name).append("\"0x").append(digits.data(), end) += '"';
    return *this;
  }
  object& flag(std::string_view name, bool value) {
    if (value) member(name) += "true";
    return *this;
  }
  object& milliseconds(std::string_view name, std::int64_t ns) {
    if (ns >= 0) number(name, ns / 1'000'000);
    return *this;
  }

 private:
  std::string& to_;
  char close_;
  bool first_ = true;
};

template <class All, class F>
void array(object& in, std::string_view name, const All& all, F add) {
  object list{in.member(name), '[', ']'};
  for (const auto& one : all) {
    object o{list.item(), '{', '}'};
    add(o, one);
  }
}

void add_counters(object& o, const runtime_counters& c) {
  o.number("dispatches", c.dispatches).number("spawned", c.spawned).number("ended", c.ended);
  o.number("steals", c.steals).number("steals_tried", c.steals_tried);
  o.number("wakes", c.wakes).number("wakes_elsewhere", c.wakes_elsewhere).number("migrations", c.migrations);
  o.number("sleeps", c.sleeps).number("time_slices", c.time_slices).number("io_waits", c.io_waits);
  o.number("bytes_read", c.bytes_read).number("bytes_written", c.bytes_written);
}

void add_place(object& o, const wait_place& p) {
  o.text("reason", p.reason).text("file", p.file).text("function", p.function);
  if (p.line != 0) o.number("line", p.line);
}

void add_worker(object& o, const worker_view& v, const worker_statistics& counted) {
  constexpr const char* states[] = {"sleeps", "searches", "runs"};
  o.number("number", v.number).number("thread", v.thread).text("state", states[static_cast<std::size_t>(v.state)]);
  o.id("runs", v.runs).text("title", v.title).flag("spare", counted.spare);
  o.number("ready", counted.ready).number("fresh", counted.fresh).number("fork_jobs", v.fork_jobs);
  o.number("processor_ms", v.processor_ns / 1'000'000)
      .number("timers", v.timers)
      .milliseconds("next_timer_ms", v.next_timer_ns);
  add_counters(o, counted.counted);
}

void add_fiber(object& o, const fiber_view& v) {
  constexpr const char* states[] = {"runs", "ready", "waits", "changes"};
  o.id("id", v.id).text("name", v.name).text("kind", v.kind).text("state", states[static_cast<std::size_t>(v.state)]);
  add_place(o, v.where);
  o.milliseconds("waits_ms", v.waits_ns).id("spawned_by", v.spawned_by).id("joined_by", v.joined_by);
  o.id("held_by", v.held_by).number("worker", v.worker);
  if (v.fd >= 0) o.number("fd", v.fd).text("peer", v.peer).flag("writes", v.writes);
  o.flag("is_stopping", v.is_stopping).flag("is_actor", v.is_actor);
  if (v.calls.empty()) return;
  object calls{o.member("calls"), '[', ']'};
  for (const std::string& call : v.calls) add_json(calls.item(), call);
}

}  // namespace

std::string to_json(const runtime_snapshot& s) {
  std::string text;
  {
    const runtime_statistics& st = s.statistics;
    object o{text, '{', '}'};
    o.text("name", st.name).number("live", st.live).number("injected", st.injected);
    o.number("blocking_under_way", st.blocking_under_way).number("blocking_waiting", st.blocking_waiting);
    o.number("io_polls", st.io_polls).number("io_events", st.io_events).number("io_descriptors", st.io_descriptors);
    add_counters(o, st.counted);
    {
      object list{o.member("workers"), '[', ']'};
      for (const worker_view& v : s.workers)
        for (const worker_statistics& w : st.workers)
          if (w.number == v.number) {
            object one{list.item(), '{', '}'};
            add_worker(one, v, w);
          }
    }
    o.number("begun", s.begun).number("running", s.running).number("ready", s.ready).number("waiting", s.waiting);
    array(o, "places", s.places, [](object& p, const place_count& g) {
      add_place(p, g.where);
      p.number("count", g.count).milliseconds("longest_ms", g.longest_ns);
    });
    array(o, "fibers", s.fibers, add_fiber);
    o.number("all_actors", s.all_actors);
    array(o, "actors", s.actors, [](object& p, const actor_view& a) {
      p.id("id", a.id).text("name", a.name).text("type", a.type).text("state", a.state).number("mail", a.mail);
      p.id("supervisor", a.supervisor);
    });
    o.number("cost_us", s.cost_ns / 1000);
  }
  return text;
}

std::string to_json(const std::vector<status_table>& all) {
  std::string text;
  {
    object list{text, '[', ']'};
    const auto texts = [](object& in, std::string_view name, const std::vector<std::string>& values) {
      object each{in.member(name), '[', ']'};
      for (const std::string& v : values) add_json(each.item(), v);
    };
    for (const status_table& t : all) {
      object o{list.item(), '{', '}'};
      o.text("name", t.name).text("help", t.help);
      texts(o, "labels", t.labels);
      texts(o, "figures", t.figures);
      array(o, "rows", t.rows, [&](object& one, const status_table::row& r) {
        texts(one, "labels", r.labels);
        object each{one.member("figures"), '[', ']'};
        for (const std::uint64_t f : r.figures) each.item() += std::to_string(f);
      });
    }
  }
  return text;
}

}  // namespace ramie::http
