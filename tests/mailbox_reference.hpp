// The reference of mailbox_model.test.cpp: what becomes of each message, one after the other.
#pragma once

#include <ramie/actor/options.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace ramie::mailbox_model {

/// What the handler of a message does beside noting it.
enum class deed {
  nothing,
  stash_once,     // puts it aside, unless this incarnation has put it aside before
  release,        // takes back all that was put aside
  replace,        // other handlers
  restore,        // the class's own handlers
  tell_self,      // sends itself a message
  tell_self_now,  // the same, urgently
  leave,          // stops
  fail,           // throws
  last = fail,
};
/// How it is sent.
enum class way { told, converted, asked, stopped };

struct letter {
  int id = 0;
  deed what = deed::nothing;
  way how = way::told;
  int urgency = 0;  // of those that are told
};

struct settings {
  std::size_t capacity = 0;
  ramie::overflow when_full = overflow::fail;
  std::size_t stash_capacity = 0;
  bool supervised = false;  // and permanent
  bool requests_wait = false;
};

/// One actor whose first handler is at work while all letters are sent.
class reference {
 public:
  explicit reference(const settings& s) : s_{s} {}

  std::vector<std::string> notes;
  std::map<int, bool> answered;  // of those that are asked
  int lost = 0;                  // dead letters
  bool alive = true;
  int incarnation = 1;

  /// What the sender is told.
  tell_status send(const letter& l, bool by_itself = false) {
    if (l.how == way::asked) answered[l.id] = false;
    if (l.how == way::stopped) {
      line_.push_back({l});
      return tell_status::ok;
    }
    if (s_.capacity != 0 && waiting_ >= s_.capacity && !by_itself) {
      if (s_.when_full == overflow::block_sender) return tell_status::full;  // it is only tried
      if (s_.when_full != overflow::drop_oldest) {
        ++lost;
        return s_.when_full == overflow::fail ? tell_status::full : tell_status::dropped;
      }
      drop_oldest();
    } else if (s_.capacity != 0 && waiting_ >= s_.capacity && s_.when_full == overflow::drop_oldest) {
      drop_oldest();
    }
    ++waiting_;
    put(l);
    return tell_status::ok;
  }
  /// Until nothing waits.
  void run() {
    while (alive) {
      if (!urgent_.empty()) handle(take(urgent_));
      else if (!line_.empty()) handle(take(line_));
      else break;
    }
  }

 private:
  struct held {
    letter is;
    bool counted = false;  // it was taken out before, and counts for no bound any more
  };
  using queue = std::deque<held>;

  void put(const letter& l) {
    if (l.urgency == 0) line_.push_back({l});
    else {
      const auto after =
          std::find_if(urgent_.begin(), urgent_.end(), [&](const held& h) { return h.is.urgency < l.urgency; });
      urgent_.insert(after, {l});
    }
  }
  static bool may_drop(const held& h) { return h.is.how != way::stopped && !h.counted; }
  void drop_oldest() {
    auto found = std::find_if(line_.begin(), line_.end(), may_drop);
    queue* from = &line_;
    if (found == line_.end()) {
      from = &urgent_;
      found = urgent_.end();
      for (auto at = urgent_.begin(); at != urgent_.end(); ++at)
        if (found == urgent_.end() || at->is.urgency < found->is.urgency) found = at;
    }
    if (found == from->end()) return;
    from->erase(found);
    --waiting_;
    ++lost;
  }
  held take(queue& from) {
    held h = from.front();
    from.pop_front();
    if (!h.counted && h.is.how != way::stopped) --waiting_;
    return h;
  }
  void handle(held h) {
    if (h.is.how == way::stopped) return end(true);
    const letter& l = h.is;
    const std::string what = std::to_string(incarnation) +
                             (replaced_                 ? "r"
                              : l.how == way::converted ? "c"
                                                        : "") +
                             " " + std::to_string(l.id);
    if (l.what == deed::stash_once && put_aside_.insert(l.id).second) {
      if (s_.stash_capacity == 0 || stash_.size() < s_.stash_capacity) {
        notes.push_back(what + " aside");
        h.counted = true;
        stash_.push_back(h);
        return;
      }
      notes.push_back(what + " no room");
    } else {
      notes.push_back(what);
    }
    if (l.what == deed::release) {
      line_.insert(line_.begin(), stash_.begin(), stash_.end());
      stash_.clear();
    }
    if (l.what == deed::replace) replaced_ = true;
    if (l.what == deed::restore) replaced_ = false;
    if (l.what == deed::tell_self || l.what == deed::tell_self_now)
      send({l.id + 1000, deed::nothing, way::told, l.what == deed::tell_self ? 0 : 1}, true);
    if (l.what == deed::fail) return end(false);
    if (l.how == way::asked) answered[l.id] = true;
    if (l.what == deed::leave) end(true);
  }
  void end(bool /*normal*/) {
    put_aside_.clear();
    replaced_ = false;
    line_.insert(line_.begin(), stash_.begin(), stash_.end());
    stash_.clear();
    if (s_.supervised) {
      ++incarnation;
      if (!s_.requests_wait) {
        std::erase_if(line_, [&](const held& h) {
          if (h.is.how != way::asked) return false;
          if (!h.counted) --waiting_;
          ++lost;
          return true;
        });
      }
      return;
    }
    alive = false;
    for (const queue* q : {&urgent_, &line_})
      lost +=
          static_cast<int>(std::count_if(q->begin(), q->end(), [](const held& h) { return h.is.how != way::stopped; }));
  }

  settings s_;
  std::size_t waiting_ = 0;
  queue urgent_, line_, stash_;
  std::set<int> put_aside_;
  bool replaced_ = false;
};

}  // namespace ramie::mailbox_model
