// Events by type and topic.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/type_info.hpp>
#include <ramie/patterns/recipient.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace ramie {

/// Passes events to the actors that have subscribed to their type, all of them or those of a topic. Subscribing takes
/// the same time however many there are, and so does leaving. Any thread, several at once; to share one, refer to it,
/// or hold it by std::shared_ptr. Nothing here suspends.
class event_bus {
 public:
  event_bus() = default;
  event_bus(const event_bus&) = delete;
  event_bus& operator=(const event_bus&) = delete;

  /// From now on `who` gets the events of type M that are published under `topic`; without a topic, all of that type.
  /// Once each, even if it has subscribed twice, or to both. Throws std::bad_alloc.
  template <class M>
  void subscribe(const recipient<M>& who) {
    add<M>(key_of<M>({}, false), who);
  }
  template <class M>
  void subscribe(std::string_view topic, const recipient<M>& who) {
    add<M>(key_of<M>(topic, true), who);
  }
  /// Takes that back. False if it had not subscribed so.
  template <class M>
  bool unsubscribe(const any_actor& who) {
    return remove(key_of<M>({}, false), who);
  }
  template <class M>
  bool unsubscribe(std::string_view topic, const any_actor& who) {
    return remove(key_of<M>(topic, true), who);
  }
  /// Takes back all that it has subscribed to.
  void unsubscribe_all(const any_actor& who) {
    const std::lock_guard guard{lock_};
    forget(who.cell());
  }

  /// Sends a copy to each subscriber. One whose mailbox is full does not get it, and holds up nobody. Those that have
  /// ended are forgotten. Throws std::bad_alloc, and what copying `m` throws.
  template <class M>
  published publish(const M& m) {
    return send(m, key_of<M>({}, false), {});
  }
  template <class M>
  published publish(std::string_view topic, const M& m) {
    return send(m, key_of<M>(topic, true), key_of<M>({}, false));
  }

 private:
  using cell = detail::actor_cell;

  struct subscribers_base {
    std::unordered_map<const cell*, std::size_t> places;
    virtual ~subscribers_base() = default;
    virtual void remove_at(std::size_t place) = 0;
    bool remove(const cell* who) {
      const auto found = places.find(who);
      if (found == places.end()) return false;
      const std::size_t place = found->second;
      places.erase(found);
      remove_at(place);
      return true;
    }
  };
  template <class M>
  struct subscribers final : subscribers_base {
    std::vector<recipient<M>> all;
    std::shared_ptr<const std::vector<recipient<M>>> seen;  // a copy for those who publish, until something changes

    void add(const recipient<M>& who) {
      all.push_back(who);
      try {
        this->places.emplace(who.cell(), all.size() - 1);
      } catch (...) {
        all.pop_back();
        throw;
      }
      seen.reset();
    }
    void remove_at(std::size_t place) override {
      if (place + 1 != all.size()) {
        all[place] = std::move(all.back());
        this->places[all[place].cell()] = place;
      }
      all.pop_back();
      seen.reset();
    }
    [[nodiscard]] bool has(const any_actor& who) const { return this->places.contains(who.cell()); }
  };

  template <class M>
  static std::string key_of(std::string_view topic, bool has_topic) {
    // Not its name, which several types may have, in blocks or sources of their own.
    const type_info* const type = &type_of<M>();
    std::string key(reinterpret_cast<const char*>(&type), sizeof type);
    if (has_topic) key.append(1, '\0').append(topic);
    return key;
  }

  template <class M>
  void add(std::string key, const recipient<M>& who) {
    const std::lock_guard guard{lock_};
    auto& at = lists_[key];
    if (at == nullptr) at = std::make_unique<subscribers<M>>();
    auto& to = static_cast<subscribers<M>&>(*at);
    if (to.has(who)) return;
    keys_[who.cell()].push_back(std::move(key));
    to.add(who);
  }
  bool remove(const std::string& key, const any_actor& who) {
    const std::lock_guard guard{lock_};
    const auto found = lists_.find(key);
    if (found == lists_.end() || !found->second->remove(who.cell())) return false;
    drop_if_empty(found);
    auto& keys = keys_[who.cell()];
    std::erase(keys, key);
    if (keys.empty()) keys_.erase(who.cell());
    return true;
  }
  void forget(const cell* who) {
    const auto found = keys_.find(who);
    if (found == keys_.end()) return;
    const std::vector<std::string> keys = std::move(found->second);
    keys_.erase(found);
    for (const std::string& key : keys) {
      const auto list = lists_.find(key);
      if (list == lists_.end()) continue;
      list->second->remove(who);
      drop_if_empty(list);
    }
  }
  void drop_if_empty(std::unordered_map<std::string, std::unique_ptr<subscribers_base>>::iterator list) {
    if (list->second->places.empty()) lists_.erase(list);
  }

  /// Inside the lock.
  template <class M>
  std::shared_ptr<const std::vector<recipient<M>>> look_at(const std::string& key) {
    const auto found = lists_.find(key);
    if (found == lists_.end()) return nullptr;
    auto& to = static_cast<subscribers<M>&>(*found->second);
    if (to.seen == nullptr) to.seen = std::make_shared<const std::vector<recipient<M>>>(to.all);
    return to.seen;
  }

  /// `more`: another list, or "". Those that are in both get it once.
  template <class M>
  published send(const M& m, const std::string& key, const std::string& more) {
    std::shared_ptr<const std::vector<recipient<M>>> first, second;
    {
      const std::lock_guard guard{lock_};
      first = look_at<M>(key);
      if (!more.empty()) second = look_at<M>(more);
    }
    published became;
    std::vector<any_actor> gone;
    const auto tell = [&](const recipient<M>& who) {
      const tell_status status = who.try_tell(m);
      if (status == tell_status::ok) ++became.taken;
      else if (status == tell_status::down) gone.push_back(who);
      else ++became.refused;
    };
    std::unordered_set<const cell*> had;
    if (first != nullptr)
      for (const recipient<M>& who : *first) {
        if (second != nullptr) had.insert(who.cell());
        tell(who);
      }
    if (second != nullptr)
      for (const recipient<M>& who : *second)
        if (!had.contains(who.cell())) tell(who);
    for (const any_actor& who : gone) unsubscribe_all(who);
    return became;
  }

  detail::os_mutex lock_;
  std::unordered_map<std::string, std::unique_ptr<subscribers_base>> lists_;
  std::unordered_map<const cell*, std::vector<std::string>> keys_;  // of each subscriber
};

}  // namespace ramie
