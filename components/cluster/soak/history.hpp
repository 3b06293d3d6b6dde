// What the nodes of a soak did, as each wrote it down, and a judge of it.
//
// An event is a line: its kind, and words. "life" is a process of a node, unlike all others.
//   H time shard token life op   an actor handled the operation, and the lease was held at that time (of the machine's
//                                one monotonic clock: nodes of a soak are on one machine)
//   S life op / A life op / F life op   a request was sent, answered, or failed
//   P id / J id / E id           a job was stored; its handler returned; its effect, which is to be there once
//   T stream count               somebody told a stream of numbers, 0 to count - 1, and its receiver was never lost
//   R stream number              the receiver got one
//   X life                       the process ended by itself, with nothing under way; those that were killed have none
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace soak {

struct verdict {
  std::vector<std::string> wrong;
  std::uint64_t handled = 0, answered = 0, failed = 0, jobs = 0, effects = 0, told = 0;
};

class judge {
 public:
  void read(const std::string& line) {
    std::istringstream in{line};
    std::string kind;
    in >> kind;
    if (kind == "H") {
      handling h;
      std::string op;
      if (in >> h.time >> h.shard >> h.token >> h.life >> op) {
        handled_.push_back(h);
        if (!ops_.insert(op).second) fails("operation " + op + " was handled twice");
      } else {
        fails("a line is not understood: " + line);
      }
      return;
    }
    std::string a, b;
    in >> a >> b;
    if (kind == "S") sent_[b] = a;
    else if (kind == "A" || kind == "F") end(b, kind == "A");
    else if (kind == "P") put_.insert(a);
    else if (kind == "J") done_.insert(a);
    else if (kind == "T" && is_number(b)) told_[a] = std::stoull(b);
    else if (kind == "R" && is_number(b)) receive(a, std::stoull(b));
    else if (kind == "X") ended_.insert(a);
    else if (kind != "E") fails("a line is not understood: " + line);
    else if (!effects_.insert(a).second) fails("the effect of job " + a + " is there twice");
  }

  verdict decide() {
    leases();
    for (const std::string& op : answered_)
      if (!ops_.contains(op)) fails("operation " + op + " was answered, and never handled");
    if (!sent_.empty())
      for (const std::string& op : ops_)
        if (!sent_.contains(op)) fails("operation " + op + " was handled, and never sent");
    for (const auto& [op, life] : sent_)
      if (ended_.contains(life) && !answered_.contains(op) && !failed_.contains(op))
        fails("request " + op + " never ended");
    for (const std::string& id : put_)
      if (!done_.contains(id)) fails("job " + id + " was stored, and never handled");
    for (const auto& [stream, count] : told_) {
      const auto at = next_.find(stream);
      const std::uint64_t got = at == next_.end() ? 0 : at->second;
      if (got != count)
        fails("of stream " + stream + " " + std::to_string(count) + " were told, " + std::to_string(got) + " came");
    }
    verdict v;
    v.wrong = wrong_;
    v.handled = ops_.size();
    v.answered = answered_.size();
    v.failed = failed_.size();
    v.jobs = put_.size();
    v.effects = effects_.size();
    for (const auto& [stream, n] : next_) v.told += n;
    return v;
  }

 private:
  struct handling {
    std::int64_t time = 0;
    std::uint64_t shard = 0, token = 0;
    std::string life;
  };
  void fails(std::string what) {
    if (wrong_.size() < 20) wrong_.push_back(std::move(what));
  }
  static bool is_number(const std::string& text) {
    return !text.empty() && text.size() < 20 && text.find_first_not_of("0123456789") == std::string::npos;
  }
  void end(const std::string& op, bool answered) {
    if (answered_.contains(op) || failed_.contains(op)) fails("request " + op + " ended twice");
    (answered ? answered_ : failed_).insert(op);
  }
  /// In order from the first, without a gap and without a double.
  void receive(const std::string& stream, std::uint64_t number) {
    std::uint64_t& next = next_[stream];
    if (number != next)
      fails("stream " + stream + ": " + std::to_string(number) + " came instead of " + std::to_string(next));
    next = number + 1;
  }
  /// One owner for a token, and no owner acts after one with a larger token has.
  void leases() {
    std::stable_sort(handled_.begin(), handled_.end(),
                     [](const handling& a, const handling& b) { return a.time < b.time; });
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> owner;
    std::map<std::uint64_t, std::uint64_t> newest;
    for (const handling& h : handled_) {
      const auto [at, fresh] = owner.emplace(std::pair{h.shard, h.token}, h.life);
      if (at->second != h.life)
        fails("shard " + std::to_string(h.shard) + ": " + at->second + " and " + h.life + " both had token " +
              std::to_string(h.token));
      std::uint64_t& last = newest[h.shard];
      if (h.token < last)
        fails("shard " + std::to_string(h.shard) + ": " + h.life + " acted with token " + std::to_string(h.token) +
              " after one with " + std::to_string(last));
      last = std::max(last, h.token);
    }
  }

  std::vector<handling> handled_;
  std::set<std::string> ops_, answered_, failed_, put_, done_, effects_, ended_;
  std::map<std::string, std::string> sent_;
  std::map<std::string, std::uint64_t> told_, next_;
  std::vector<std::string> wrong_;
};

}  // namespace soak
