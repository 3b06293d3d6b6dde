// Links as actors, and what their envelopes do here.
//
// An envelope is a varint of its kind, then varints and bytes as listed at `envelope` in node.hpp. All that comes is
// checked: the actor that is named exists and was exported, the class takes the message, the bytes are one. What is
// wrong is left out, and said once for each link and message type on standard error; a request is answered by an error.
#include "link_actor.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <utility>

namespace ramie::detail {

namespace {

link_settings settings_of(const cluster_options& o) {
  link_settings s;
  s.lost_after = o.lost_after;
  s.heartbeat = std::min(s.heartbeat, o.lost_after / 4);
  s.refused_after = std::max(s.refused_after, o.lost_after / 10);
  return s;
}

/// Sends the answer of a local actor back, on whichever thread it comes.
class answer_writer final : public answer_sender {
 public:
  answer_writer(std::shared_ptr<peer> to, std::uint64_t number, std::uint64_t request)
      : to_{std::move(to)}, number_{number}, request_{request} {}

  void value(std::string_view bytes) noexcept override {
    put(answer_status::value, [&](wire_writer& w) { w.bytes(bytes); });
  }
  void failure(std::exception_ptr e) noexcept override {
    try {
      std::rethrow_exception(e);
    } catch (const actor_down& down) {
      put(answer_status::down, [&](wire_writer& w) { write_reason(w, down.reason()); });
    } catch (const mailbox_full&) {
      put(answer_status::full, [](wire_writer&) {});
    } catch (const broken_reply&) {
      put(answer_status::broken, [](wire_writer&) {});
    } catch (const std::exception& other) {
      put(answer_status::failed, [&](wire_writer& w) { w.bytes(std::string_view{other.what()}.substr(0, 4096)); });
    } catch (...) {
      put(answer_status::failed, [](wire_writer& w) { w.bytes("an exception that is not a std::exception"); });
    }
  }
  wire_refs& refs() noexcept override { return to_->core; }
  [[nodiscard]] std::size_t most() const noexcept override { return to_->core.message_most(); }

 private:
  template <class Write>
  void put(answer_status status, Write write) noexcept {
    try {
      std::string bytes;
      wire_writer w{bytes};
      w.with_length([&] {
        w.varint(static_cast<std::uint64_t>(envelope::answer));
        w.varint(number_);
        w.varint(request_);
        w.varint(static_cast<std::uint64_t>(status));
        write(w);
      });
      to_->write(bytes);
    } catch (const std::bad_alloc&) {
      // The asker's deadline is what is left to it.
    }
  }

  std::shared_ptr<peer> to_;
  std::uint64_t number_, request_;
};

}  // namespace

link_actor::link_actor(std::shared_ptr<cluster_core> core, std::shared_ptr<peer> p, std::uint64_t epoch)
    : core_{std::move(core)},
      peer_{std::move(p)},
      link_{*this, epoch, now(), settings_of(core_->options)},
      answering_{make_answering_cell()} {}

link_actor::~link_actor() {
  give_up();
  answering_->release();
  answering_->release();
}

node_link::duration link_actor::now() noexcept {
  return std::chrono::duration_cast<node_link::duration>(std::chrono::steady_clock::now().time_since_epoch());
}

void link_actor::give_up() {
  lost_ = true;
  for (auto& [number, t] : targets_)
    if (t.feeder) t.feeder.kill();
  targets_.clear();
  core_->peer_lost(*peer_, link_.epoch() + 1);
}

void link_actor::send(std::string_view bytes, bool probe) {
  core_->net->send(peer_->address, bytes, probe);
  const std::lock_guard guard{peer_->lock};
  ++peer_->info.sent_frames;
  peer_->info.sent_bytes += bytes.size();
}

void link_actor::on(flush) { pump(); }
void link_actor::on(const frame& f) {
  if (lost_) return;
  {
    const std::lock_guard guard{peer_->lock};
    ++peer_->info.received_frames;
    peer_->info.received_bytes += f.bytes.size();
  }
  link_.received(f.bytes, now());
  pump();
}
void link_actor::on(tick) {
  armed_ = node_link::duration::max();
  if (lost_) return;
  link_.tick(now());
  peer_->sweep();
  pump();
}
void link_actor::on(refused) {
  if (lost_) return;
  link_.refused(now());
  pump();
}
void link_actor::on(reconnected) {
  if (lost_) return;
  link_.reconnected(now());
  pump();
}
void link_actor::on(close) {
  if (lost_) return;
  link_.end(now());
  pump();
}

void link_actor::on(gone g) {
  const auto at = targets_.find(g.number);
  if (at == targets_.end()) return;
  if (at->second.feeder) at->second.feeder.stop();  // after what it was given before
  targets_.erase(at);
}

/// After each event: sends what there is to send, and sees to the next tick.
void link_actor::pump() {
  if (lost_) {
    give_up();
    stop();
    return;
  }
  for (;;) {
    std::string chunk;
    std::vector<any_actor> go_on;
    {
      const std::lock_guard guard{peer_->lock};
      peer_->called = false;
      if (peer_->chunks.empty() || !link_.can_send(peer_->chunks.front().size())) break;
      chunk = std::move(peer_->chunks.front());
      peer_->chunks.pop_front();
      peer_->backlog -= chunk.size();
      if (peer_->backlog < peer::backlog_most / 2) go_on.swap(peer_->held);
    }
    link_.send(chunk, now());
    for (const any_actor& one : go_on) resume_foreign(*one.cell());
  }
  const node_link::duration at = now();
  link_.idle(at);
  {
    const std::lock_guard guard{peer_->lock};
    peer_->info.open = link_.is_open();
    peer_->info.unacknowledged_frames = link_.unacknowledged();
    peer_->info.credit_bytes = link_.credit_left();
  }
  const node_link::duration next = link_.next_tick();
  if (next >= armed_) return;
  armed_ = next;
  start_timer(timer_key{"tick"}, std::max(next - at, node_link::duration{1}), tick{});
}

void link_actor::deliver(std::string_view payload) {
  wire_reader r{payload};
  try {
    while (!r.empty()) open_envelope(r.bytes());
  } catch (const wire_error& e) {
    if (told_.insert("frame").second)
      std::fprintf(stderr, "ramie: cluster: a frame of node %s is broken: %s\n", peer_->address.name.c_str(), e.what());
  }
  link_.passed_on(payload.size());
}

void link_actor::open_envelope(std::string_view bytes) {
  wire_reader r{bytes};
  const auto kind = static_cast<envelope>(r.varint());
  switch (kind) {
    case envelope::type: {
      const std::uint64_t index = r.varint();
      if (index >= 65536) wire_fails("a message's index is out of range");
      if (theirs_.size() <= index) theirs_.resize(index + 1);
      theirs_[index].name = r.bytes();
      theirs_[index].schema = r.bytes();
      break;
    }
    case envelope::tell:
    case envelope::ask: take_mail(kind, r); break;
    case envelope::answer: take_answer(r); break;
    default: take_order(kind, r); break;
  }
}

link_actor::target* link_actor::target_of(std::uint64_t number) {
  if (const auto known = targets_.find(number); known != targets_.end()) return &known->second;
  auto found = core_->exported(number);
  if (!found) return nullptr;
  target t;
  t.to = *std::move(found);
  if (t.to.capacity != 0) {
    t.feeder = spawn_actor<feed>([](mailbox<feed>& box) {
      while (auto next = box.receive()) std::get<feed> (*next)();
    });
  }
  return &targets_.emplace(number, std::move(t)).first->second;
}

const known_message* link_actor::message_of(target& t, std::uint64_t index) {
  if (index < t.by_index.size() && t.by_index[index] != nullptr) return t.by_index[index];
  if (index >= theirs_.size() || theirs_[index].name.empty()) return nullptr;
  const announced& theirs = theirs_[index];
  const known_message* mine = t.to.of->find(theirs.name);
  if (mine != nullptr && joined_schemas_fit(theirs.schema, mine->how.schema)) {
    if (t.by_index.size() <= index) t.by_index.resize(index + 1);
    return t.by_index[index] = mine;
  }
  if (told_.insert(theirs.name).second)
    std::fprintf(stderr, "%s; node %s sends it\n", why_refused(t, index).c_str(), peer_->address.name.c_str());
  return nullptr;
}

/// What those read whose message is not taken: on this node, and the asker.
std::string link_actor::why_refused(const target& t, std::uint64_t index) const {
  std::string text = "ramie: cluster: on node " + core_->me.name + " a " + std::string{t.to.of->how.of->name()};
  if (index >= theirs_.size() || theirs_[index].name.empty()) return text + " does not take a message without a name";
  const announced& theirs = theirs_[index];
  const known_message* mine = t.to.of->find(theirs.name);
  if (mine == nullptr) return text + " does not take " + theirs.name;
  return text + " takes " + theirs.name + " as \"" + mine->how.schema + "\", not as \"" + theirs.schema + "\"";
}

/// Mail on its way from the link to its actor, perhaps by a feeder.
struct link_actor::letter {
  std::shared_ptr<cluster_core> core;
  std::shared_ptr<peer> from;
  any_actor to;
  const known_message* known;  // null: it is not taken as it was sent
  std::uint64_t number, request, left_ms;
  bool asks;
  std::chrono::steady_clock::time_point deadline;
  std::string refusal;  // if it is not taken

  void hand_over(std::string_view bytes) const {
    auto answers = asks ? std::make_unique<answer_writer>(from, number, request) : nullptr;
    try {
      if (known == nullptr) throw remote_failure{refusal};
      if (asks && known->how.ask == nullptr)
        throw remote_failure{"ramie: cluster: fiber actors can be told, not asked"};
      if (!asks) known->how.tell(to, bytes, *core);
      else if (left_ms == 0 || std::chrono::steady_clock::now() < deadline)
        known->how.ask(to, bytes, std::move(answers), *core);
    } catch (const cancelled&) {
      throw;
    } catch (const std::exception& e) {
      if (answers != nullptr) answers->failure(std::current_exception());
      else if (known != nullptr) report(*from, e);
    }
  }
  static void report(const peer& from, const std::exception& e) {
    std::fprintf(stderr, "ramie: cluster: a message of node %s was not handed over: %s\n", from.address.name.c_str(),
                 e.what());
  }
};

void link_actor::take_mail(envelope kind, wire_reader& r) {
  const std::uint64_t number = r.varint();
  const std::uint64_t index = r.varint();
  const bool asks = kind == envelope::ask;
  const std::uint64_t request = asks ? r.varint() : 0;
  const std::uint64_t left_ms = asks ? r.varint() : 0;
  const std::string_view body = r.rest();
  target* t = target_of(number);
  if (t == nullptr) {
    if (asks)
      answer_writer{peer_, number, request}.failure(std::make_exception_ptr(actor_down{core_->reason_of(number)}));
    return;
  }
  const known_message* known = message_of(*t, index);
  if (!asks && !t->feeder) {  // the usual case
    if (known == nullptr) return;
    try {
      known->how.tell(t->to.who, body, *core_);
    } catch (const cancelled&) {
      throw;
    } catch (const std::exception& e) {
      letter::report(*peer_, e);
    }
    return;
  }
  letter l{core_, peer_, t->to.who, known, number, request, left_ms, asks, {}, {}};
  if (known == nullptr) l.refusal = why_refused(*t, index);
  if (left_ms != 0) l.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds{left_ms};
  if (!t->feeder) {
    l.hand_over(body);
    return;
  }
  t->feeder.tell(feed{[l = std::move(l), bytes = std::string{body}] {
    l.hand_over(bytes);
    std::string credit;
    wire_writer w{credit};
    w.with_length([&] {
      w.varint(static_cast<std::uint64_t>(envelope::credit));
      w.varint(l.number);
      w.varint(1);
    });
    l.from->write(credit);
  }});
}

void link_actor::take_answer(wire_reader& r) {
  const std::uint64_t number = r.varint();
  const std::uint64_t request = r.varint();
  const std::uint64_t status = r.varint();
  std::shared_ptr<proxy> p;
  {
    const std::lock_guard guard{peer_->lock};
    const auto at = peer_->proxies.find(number);
    if (at == peer_->proxies.end()) return;
    p = at->second.state;
  }
  message* m = nullptr;
  {
    const std::lock_guard guard{p->lock};
    const auto at = p->asked.find(request);
    if (at == p->asked.end()) return;
    m = at->second;
    p->asked.erase(at);
  }
  const type_info* type = nullptr;
  m->act(*m, message_verb::type, &type);
  const remote_message& how = p->of->find(*type)->how;
  no_answer none;
  try {
    switch (static_cast<answer_status>(status)) {
      case answer_status::value: how.answer(*answering_, *m, r.bytes(), *core_); return;
      case answer_status::down: none = {no_answer::what::down, read_reason(r), {}}; break;
      case answer_status::full: none.kind = no_answer::what::full; break;
      case answer_status::broken: none.exception = std::make_exception_ptr(broken_reply{}); break;
      default: none.exception = std::make_exception_ptr(remote_failure{std::string{r.bytes()}}); break;
    }
  } catch (const wire_error&) {
    none.exception = std::current_exception();
  }
  how.refuse(*answering_, *m, none);
}

void link_actor::take_order(envelope kind, wire_reader& r) {
  const std::uint64_t number = r.varint();
  if (kind == envelope::down || kind == envelope::credit) {
    peer::stood_in p;
    {
      const std::lock_guard guard{peer_->lock};
      const auto at = peer_->proxies.find(number);
      if (at == peer_->proxies.end()) return;
      p = at->second;
    }
    if (kind == envelope::down) {
      const exit_reason why = read_reason(r);
      if (peer_->strike(number, p.cell.cell(), false)) end_foreign(*p.cell.cell(), why);
    } else {
      const std::uint64_t count = r.varint();
      {
        const std::lock_guard guard{p.state->lock};
        p.state->under_way -= std::min(count, p.state->under_way);
      }
      resume_foreign(*p.cell.cell());
    }
    return;
  }
  target* t = target_of(number);
  if (kind == envelope::watch) {
    if (t != nullptr) {
      const std::lock_guard guard{peer_->lock};
      peer_->watched.insert(number);
    }
    // It may have ended meanwhile, before it was seen as watched; twice does no harm.
    if (t == nullptr || !core_->exported(number)) {
      std::string bytes;
      wire_writer w{bytes};
      w.with_length([&] {
        w.varint(static_cast<std::uint64_t>(envelope::down));
        w.varint(number);
        write_reason(w, core_->reason_of(number));
      });
      peer_->write(bytes);
    }
    return;
  }
  if (t == nullptr) return;
  const any_actor to = t->to.who;
  if (kind == envelope::kill) {
    to.kill();
    return;
  }
  std::function<void()> act;
  if (kind == envelope::stop) {
    exit_reason why = read_reason(r);
    act = [to, why] { why.kind() == exit_kind::alive ? to.stop() : to.stop(why); };
  } else if (kind == envelope::exit) {
    const bool linked = r.varint() != 0;
    const exit_reason why = read_reason(r);
    wire_refs::record from;
    read_message(r, from);
    const any_actor who = from.node.empty() || core_->class_of(from.type) == nullptr ? any_actor{} : core_->in(from);
    act = [to, who, why, linked] { exit_from_elsewhere(*to.cell(), who, why, linked); };
  } else {
    wire_fails("an envelope's kind is unknown");
  }
  if (t->feeder) t->feeder.tell(feed{std::move(act)});
  else act();
}

}  // namespace ramie::detail
