// The actors of a node: one for each link, and one that watches exports.
#pragma once

#include "node.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ramie::detail {

/// Watches exports, and makes the links that other nodes open.
class hub_actor : public actor<hub_actor> {
 public:
  explicit hub_actor(std::weak_ptr<cluster_core> core) : core_{std::move(core)} {}
  struct watch {
    any_actor who;
  };
  struct came {
    node_address from;
    std::string frame;
  };
  void on(const watch& w) { monitor(w.who); }
  void on(const down& d) {
    if (const auto core = core_.lock()) core->actor_ended(d.who, d.reason);
  }
  void on(came& c);

 private:
  std::weak_ptr<cluster_core> core_;
};

/// Takes the names of actors that have ended out of the server's keys, as soon as the server can be asked.
class name_keeper : public actor<name_keeper> {
 public:
  /// By its revision: somebody else may have taken the name meanwhile.
  struct give_up {
    std::string name;
    std::uint64_t revision;
  };
  struct again {};

  explicit name_keeper(carrier& net) : net_{net} {}
  void on(const give_up& g) {
    left_.push_back(g);
    on(again{});
  }
  void on(again);

 private:
  carrier& net_;
  std::vector<give_up> left_;
};

/// Runs a link: what was written goes out in frames, what comes in goes to actors and proxies here.
class link_actor final : public actor<link_actor>, private link_output {
 public:
  struct flush {};
  struct tick {};
  struct refused {};
  struct reconnected {};
  struct close {};
  struct gone {
    std::uint64_t number;
  };
  struct frame {
    std::string bytes;
  };

  link_actor(std::shared_ptr<cluster_core> core, std::shared_ptr<peer> p, std::uint64_t epoch);
  ~link_actor();
  link_actor(const link_actor&) = delete;
  link_actor& operator=(const link_actor&) = delete;

  void on(flush);
  void on(tick);
  void on(refused);
  void on(reconnected);
  void on(close);
  void on(gone g);
  void on(const frame& f);

 private:
  using feed = std::function<void()>;
  struct target {
    export_entry to;
    std::vector<const known_message*> by_index;
    actor_ref<mailbox<feed>> feeder;  // of a bounded mailbox: only it waits
  };
  struct letter;
  struct announced {
    std::string name, schema;
  };

  void send(std::string_view bytes, bool probe) override;
  void opened() override {}
  void deliver(std::string_view payload) override;
  void lost() override { lost_ = true; }

  [[nodiscard]] static node_link::duration now() noexcept;
  void pump();
  void open_envelope(std::string_view bytes);
  void take_mail(envelope kind, wire_reader& r);
  void take_answer(wire_reader& r);
  void take_order(envelope kind, wire_reader& r);
  target* target_of(std::uint64_t number);
  const known_message* message_of(target& t, std::uint64_t index);
  [[nodiscard]] std::string why_refused(const target& t, std::uint64_t index) const;
  void give_up();

  std::shared_ptr<cluster_core> core_;
  std::shared_ptr<peer> peer_;
  node_link link_;
  bool lost_ = false;
  node_link::duration armed_ = node_link::duration::max();
  std::vector<announced> theirs_;
  std::unordered_map<std::uint64_t, target> targets_;
  std::set<std::string> told_;  // mismatches that were reported
  actor_cell* answering_;
};

}  // namespace ramie::detail
