// Proxies: cells that stand for actors of other nodes, and references in messages.
#include "link_actor.hpp"
#include "node.hpp"

#include <ramie/patterns/foreign.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace ramie::detail {

namespace {

/// Tells a proxy that nobody may refer to it any more: behind all other mail, so that nothing is lost.
void act_on_forget(message& self, message_verb verb, void* context) {
  static_cast<void>(self);
  if (verb == message_verb::type) *static_cast<const type_info**>(context) = &type_of<void>();
}

std::string describe(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

class proxy_actor final : public foreign_actor {
 public:
  proxy_actor(std::shared_ptr<peer> to, std::shared_ptr<proxy> state) : to_{std::move(to)}, state_{std::move(state)} {}
  ~proxy_actor() override {
    answering_->release();
    answering_->release();
  }

  bool take(actor_cell& self, message& m) noexcept override {
    try {
      return take_or_throw(self, m);
    } catch (...) {
      refuse(m, std::current_exception());
      return true;
    }
  }
  void kill(actor_cell& /*self*/, const exit_reason& /*why*/) noexcept override {
    order(envelope::kill, [](wire_writer&) {});
  }
  void turn_ends(actor_cell& /*self*/) noexcept override { pass_on(); }
  void ends(const exit_reason& why) noexcept override {
    std::unordered_map<std::uint64_t, message*> left;
    {
      const std::lock_guard guard{state_->lock};
      state_->over = true;
      left.swap(state_->asked);
    }
    for (const auto& [request, m] : left) discard_foreign(*answering_, *m, letter_fate::down, why);
  }

 private:
  static constexpr std::size_t batch_bytes = 8192;

  bool take_or_throw(actor_cell& self, message& m) {
    if (m.act == &act_on_forget) {
      pass_on();
      if (to_->strike(state_->number, &self, true)) end_foreign(self, exit_reason{exit_kind::stopped});
      return done(m);
    }
    if (m.act == &act_on_foreign_exit) {
      const exit_signal& signal = static_cast<body_node<exit_signal>&>(m).body;
      wire_refs::record who;
      try {
        if (signal.who) who = to_->core.out(signal.who);
      } catch (const wire_error&) {
        // Of a class that the cluster does not know: it goes without.
      }
      order(envelope::exit, [&](wire_writer& w) {
        w.varint((m.flags & message::own) != 0 ? 1 : 0);  // it was linked
        write_reason(w, signal.reason);
        write_message(w, who);
      });
      return done(m);
    }
    if (const auto why = stop_in(self, m)) {
      order(envelope::stop, [&](wire_writer& w) { write_reason(w, *why); });
      return done(m);
    }
    if (!has_room(self)) return false;
    const type_info* type = nullptr;
    m.act(m, message_verb::type, &type);
    const known_message* known = state_->of->find(*type);
    const bool asks = (m.flags & message::request) != 0;
    if (known == nullptr || (asks && known->how.ask == nullptr))
      throw remote_failure{"ramie: cluster: " + std::string{type->name()} + " is not among what may be sent to a " +
                           std::string{state_->of->how.of->name()} + " on another node"};
    if (std::find(announced_.begin(), announced_.end(), known->index) == announced_.end()) {
      to_->announce(*known);
      announced_.push_back(known->index);
    }
    if (asks) ask(self, m, *known);
    else tell(m, *known);
    counted_ = false;
    if (out_.size() >= batch_bytes) pass_on();
    return true;
  }

  /// False: it is held.
  bool has_room(actor_cell& self) {
    if (to_->hold_if_full(self)) return false;
    if (state_->window == 0) return true;
    const std::lock_guard guard{state_->lock};
    if (state_->under_way >= state_->window) {
      hold_foreign(self);  // before the lock is given up: credit comes under it
      return false;
    }
    ++state_->under_way;
    counted_ = true;
    return true;
  }

  void tell(message& m, const known_message& known) {
    append(known.how.name, [&](wire_writer& w) {
      w.varint(static_cast<std::uint64_t>(envelope::tell));
      w.varint(state_->number);
      w.varint(known.index);
      known.how.encode(m, w);
    });
    done(m);
  }

  void ask(actor_cell& self, message& m, const known_message& known) {
    const std::uint64_t request = to_->requests.fetch_add(1, std::memory_order_relaxed) + 1;
    std::uint64_t left_ms = 0;
    if (const auto deadline = deadline_of_request(self, m)) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now());
      left_ms = left.count() < 0 ? 1 : static_cast<std::uint64_t>(left.count()) + 1;
    }
    append(known.how.name, [&](wire_writer& w) {
      w.varint(static_cast<std::uint64_t>(envelope::ask));
      w.varint(state_->number);
      w.varint(known.index);
      w.varint(request);
      w.varint(left_ms);
      known.how.encode(m, w);
    });
    const std::lock_guard guard{state_->lock};
    state_->asked.emplace(request, &m);
  }

  template <class Write>
  void append(std::string_view what, Write write) {
    const std::size_t before = out_.size();
    try {
      wire_writer w{out_, &to_->core};
      w.with_length([&] {
        const std::size_t begin = out_.size();
        write(w);
        check_wire_size(what, out_.size() - begin, to_->core.message_most());
      });
    } catch (...) {
      out_.resize(before);
      throw;
    }
  }

  /// What concerns the actor and is not mail.
  template <class Write>
  void order(envelope kind, Write write) noexcept {
    try {
      append("an order", [&](wire_writer& w) {
        w.varint(static_cast<std::uint64_t>(kind));
        w.varint(state_->number);
        write(w);
      });
    } catch (const std::exception& e) {
      std::fprintf(stderr, "ramie: cluster: an order to an actor of node %s was not sent: %s\n",
                   to_->address.name.c_str(), e.what());
    }
  }

  bool done(message& m) noexcept {
    discard_foreign(*answering_, m, letter_fate::down, exit_reason{});
    return true;
  }

  void refuse(message& m, std::exception_ptr e) noexcept {
    if (std::exchange(counted_, false)) {
      const std::lock_guard guard{state_->lock};
      --state_->under_way;
    }
    if ((m.flags & message::request) == 0)
      std::fprintf(stderr, "ramie: cluster: a message to an actor of node %s was not sent: %s\n",
                   to_->address.name.c_str(), describe(e).c_str());
    discard_foreign(*answering_, m, letter_fate::down, exit_reason{exit_kind::failed, std::move(e)});
  }

  void pass_on() noexcept {
    if (out_.empty()) return;
    to_->write(out_);
    out_.clear();
  }

  std::shared_ptr<peer> to_;
  std::shared_ptr<proxy> state_;
  std::string out_;  // of this turn
  std::vector<std::uint64_t> announced_;
  bool counted_ = false;  // among those under way: the message that is just being written
  actor_cell* answering_ = make_answering_cell();
};

}  // namespace

std::string text_of_exception(const std::exception_ptr& e) { return e ? describe(e) : std::string{}; }

std::unique_ptr<foreign_actor> make_proxy_actor(std::shared_ptr<peer> to, std::shared_ptr<proxy> state) {
  return std::make_unique<proxy_actor>(std::move(to), std::move(state));
}

// ---- at the link ---------------------------------------------------------------------------------------------------

bool peer::write(std::string_view envelopes) {
  const std::lock_guard guard{lock};
  return append(envelopes);
}

bool peer::append(std::string_view envelopes) {
  if (lost) return false;
  if (chunks.empty() || chunks.back().size() + envelopes.size() > node_link::frame_bytes) {
    chunks.emplace_back();
    chunks.back().reserve(std::max(node_link::frame_bytes, envelopes.size()));
  }
  chunks.back().append(envelopes);
  backlog += envelopes.size();
  if (!std::exchange(called, true) && link) link.tell(link_actor::flush{});
  return true;
}

void peer::announce(const known_message& m) {
  std::string bytes;
  wire_writer w{bytes};
  w.with_length([&] {
    w.varint(static_cast<std::uint64_t>(envelope::type));
    w.varint(m.index);
    w.bytes(m.how.name);
    w.bytes(m.how.schema);
  });
  // In one step: another proxy that finds it announced writes a message of it next.
  const std::lock_guard guard{lock};
  if (announced.insert(m.index).second) append(bytes);
}

bool peer::hold_if_full(actor_cell& c) {
  // Each message comes here, so the lock is for those that may have to wait.
  if (backlog.load(std::memory_order_relaxed) < backlog_most && !lost.load(std::memory_order_relaxed)) return false;
  const std::lock_guard guard{lock};
  // A lost one's proxies are about to end, and what they have not passed on is a dead letter.
  if (backlog < backlog_most && !lost) return false;
  hold_foreign(c);
  if (!lost) held.emplace_back(c);
  return true;
}

any_actor peer::stand_in(std::uint64_t number, const known_class& of, std::uint64_t capacity) {
  {
    const std::lock_guard guard{lock};
    if (const auto known = proxies.find(number); known != proxies.end()) return known->second.cell;
  }
  auto state = std::make_shared<proxy>();
  state->of = &of;
  state->number = number;
  state->window = capacity;
  state->to = weak_from_this();
  any_actor cell = of.how.stand_in(make_proxy_actor(shared_from_this(), state), {.mailbox_capacity = capacity});
  {
    const std::lock_guard guard{core.lock};
    core.elsewhere.emplace(cell.cell(), wire_refs::record{address.name, address.incarnation, number,
                                                          std::string{of.how.of->name()}, capacity});
  }
  any_actor first = cell;
  bool gone = false;
  {
    const std::lock_guard guard{lock};
    gone = lost;
    if (!lost) {
      const auto [at, fresh] = proxies.emplace(number, stood_in{cell, state});
      first = at->second.cell;
    }
  }
  if (gone || first != cell) {
    core.forget(*cell.cell());
    end_foreign(*cell.cell(), exit_reason{exit_kind::node_lost});
    return first;
  }
  std::string bytes;
  wire_writer w{bytes};
  w.with_length([&] {
    w.varint(static_cast<std::uint64_t>(envelope::watch));
    w.varint(number);
  });
  write(bytes);
  return cell;
}

bool peer::strike(std::uint64_t number, const actor_cell* cell, bool only_forgotten) {
  stood_in out;
  {
    const std::lock_guard guard{lock};
    const auto at = proxies.find(number);
    if (at == proxies.end() || at->second.cell.cell() != cell) return false;
    if (only_forgotten) {
      const std::lock_guard proxy_guard{at->second.state->lock};
      if (!is_forgotten(*cell) || !at->second.state->asked.empty()) return false;
    }
    out = std::move(at->second);
    proxies.erase(at);
  }
  core.forget(*cell);
  return true;
}

void peer::sweep() {
  std::vector<any_actor> unused;
  {
    const std::lock_guard guard{lock};
    for (auto& [number, p] : proxies)
      if (is_forgotten(*p.cell.cell())) unused.push_back(p.cell);
  }
  // If a proxy comes to it before the reference here is given up, it stays until the next time.
  for (const any_actor& one : unused)
    one.cell()->post_lifecycle(make_message<message_base>(&act_on_forget, message::lifecycle));
}

// ---- references in messages ----------------------------------------------------------------------------------------

void write_ref(wire_writer& w, const any_actor& who) {
  if (w.refs() == nullptr) wire_fails("references to actors go to other nodes only");
  const wire_refs::record what = who ? w.refs()->out(who) : wire_refs::record{};
  w.with_length([&] { write_message(w, what); });
}

any_actor read_ref(wire_reader& r, const type_info* wanted) {
  wire_refs::record what;
  r.with_length([&](wire_reader& inside) { read_message(inside, what); });
  if (what.node.empty()) return {};
  if (r.refs() == nullptr) wire_fails("references to actors come from other nodes only");
  if (wanted != nullptr && what.type != wanted->name())
    throw wire_error{"ramie: wire: a reference is to a " + what.type + ", not to a " + std::string{wanted->name()}};
  return r.refs()->in(what);
}

wire_refs::record cluster_core::out(const any_actor& who) {
  actor_cell& c = *who.cell();
  any_actor fresh;
  wire_refs::record what;
  {
    const std::lock_guard guard{lock};
    if (const auto there = elsewhere.find(&c); there != elsewhere.end()) return there->second;
    const std::string_view type = c.how().of->name();
    const auto known = classes.find(type);
    if (known == classes.end())
      throw wire_error{"ramie: wire: the cluster does not know " + std::string{type} + ": call knows<...>()"};
    const auto [at, is_fresh] = numbers.emplace(&c, exported_last + 1);
    if (is_fresh) {
      ++exported_last;
      export_entry e{who, known->second.get(), capacity_of(c), {}};
      exports.emplace(at->second, std::move(e));
      fresh = who;
    }
    what = {me.name, me.incarnation, at->second, std::string{type}, exports.at(at->second).capacity};
  }
  if (fresh) hub.tell(hub_actor::watch{fresh});
  return what;
}

void check_address(const wire_refs::record& what) {
  if (!is_word(what.node, node_name_most))
    throw wire_error{"ramie: wire: a reference is to an actor of what is no node"};
}

any_actor cluster_core::in(const record& what) {
  check_address(what);
  const known_class* of = class_of(what.type);
  if (of == nullptr)
    throw wire_error{"ramie: wire: a reference is to a " + what.type + ", which the cluster does not know here"};
  if (what.node == me.name && what.incarnation == me.incarnation) {
    if (const auto here = exported(what.number)) return here->who;
    // It has ended. One that ends at once says so, too.
    const auto nobody = std::make_shared<peer>(shared_from_this(), me);
    nobody->lost = true;
    const any_actor gone = of->how.stand_in(make_proxy_actor(nobody, std::make_shared<proxy>()), {});
    end_foreign(*gone.cell(), reason_of(what.number));
    return gone;
  }
  return peer_of({what.node, what.incarnation})->stand_in(what.number, *of, what.capacity);
}

}  // namespace ramie::detail
