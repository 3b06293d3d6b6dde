#include "engine.hpp"

#include <chrono>
#include <deque>
#include <mutex>
#include <utility>

namespace exchange {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t round_most = 256;     // requests in one transaction: a guess
constexpr std::size_t depth_shown = 10;     // prices on each side
constexpr std::size_t keys_most = 100'000;  // more than requests can be under way

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string note_of(const trade& t, const order& o) {
  return R"({"fill":)" + to_json(t) + R"(,"order":)" + to_json(o) + "}";
}

/// Which order a key was used for. X3.
class key_list {
 public:
  void add(const std::string& trader, const std::string& key, std::int64_t id) {
    std::string both = joined(trader, key);
    if (!ids_.emplace(both, id).second) return;
    order_.push_back(std::move(both));
    if (order_.size() <= keys_most) return;
    ids_.erase(order_.front());
    order_.pop_front();
  }
  [[nodiscard]] const std::int64_t* find(const std::string& trader, const std::string& key) const {
    const auto found = ids_.find(joined(trader, key));
    return found == ids_.end() ? nullptr : &found->second;
  }

 private:
  static std::string joined(const std::string& trader, const std::string& key) {
    return std::to_string(trader.size()) + ':' + trader + key;
  }
  std::unordered_map<std::string, std::int64_t> ids_;
  std::deque<std::string> order_;  // the oldest first
};

class engine {
 public:
  explicit engine(services& all) : all_{all} {
    store::restored r = all.data.restore(keys_most);
    next_order_ = r.last_order + 1;
    next_trade_ = r.last_trade + 1;
    for (auto k = r.keys.rbegin(); k != r.keys.rend(); ++k) keys_.add(k->trader, k->key, k->id);
    for (const order& o : r.open) book_.add(o);
    tell_orders(r.open);
    all_.news.publish(book_.best(depth_shown), all_.news.tape().empty() ? all.data.last_trades(50) : missed());
    all_.count.starts.fetch_add(1, std::memory_order_relaxed);
    all_.ready.set();
  }

  void run(engine_box& box) {
    while (auto m = box.receive()) {
      take(std::move(*m));
      for (std::size_t n = 1; n < round_most; ++n) {  // X1
        auto more = box.receive_for(0ns);
        if (!more) break;
        take(std::move(*more));
      }
      finish_round();
    }
  }

 private:
  struct pending {
    ramie::reply<receipt> to;
    receipt what;
    bool look_up;  // it was there before: the receipt is in the database
  };

  void take(std::variant<place_request, withdraw_request, expire>&& m) {
    if (auto* p = std::get_if<place_request>(&m)) place_one(std::move(p->body), p->reply);
    else if (auto* w = std::get_if<withdraw_request>(&m)) withdraw_one(w->body, w->reply);
    else expire_one(std::get<expire>(m).id);
  }

  void place_one(place&& p, const ramie::reply<receipt>& to) {
    if (const std::int64_t* known = p.key.empty() ? nullptr : keys_.find(p.what.trader, p.key)) {
      answers_.push_back({to, {.what = {.id = *known}, .trades = {}}, true});
      return;
    }
    receipt r{std::move(p.what), {}};
    r.what.id = next_order_++;
    if (!p.key.empty()) keys_.add(r.what.trader, p.key, r.what.id);
    r.trades = book_.place(r.what, round_.touched);
    for (trade& t : r.trades) {
      t.id = next_trade_++;
      t.at_ms = now_ms();
      round_.made.push_back(t);
    }
    // An order of this round is inserted with what is left of it at the round's end, below.
    round_.placed.push_back({r.what, std::move(p.key)});
    answers_.push_back({to, std::move(r), false});
  }

  void withdraw_one(const withdraw& w, const ramie::reply<receipt>& to) {
    const order* o = book_.find(w.id);
    if (o == nullptr || o->trader != w.trader) return to.set_exception(std::make_exception_ptr(not_open{}));
    answers_.push_back({to, {*book_.withdraw(w.id), {}}, false});
    round_.withdrawn.push_back(w.id);
  }

  void expire_one(std::int64_t id) {
    if (book_.withdraw(id)) round_.withdrawn.push_back(id);
  }

  void finish_round() {
    // Orders of this round that a later one of it has traded with.
    for (auto& [o, key] : round_.placed)
      if (const auto later = round_.touched.find(o.id); later != round_.touched.end()) {
        o.remaining = later->second;
        round_.touched.erase(later);
      }
    if (!round_.empty()) {
      const auto before = std::chrono::steady_clock::now();
      all_.data.write(round_);  // X2
      count(std::chrono::steady_clock::now() - before);
    }
    for (const round::fresh& f : round_.placed)
      if (const order* o = book_.find(f.what.id)) all_.orders.add(all_, *o);
    for (const trade& t : round_.made)
      for (const std::int64_t id : {t.buy_order, t.sell_order}) {
        // An actor made in this round has its order as it is at the round's end.
        if (const order* o = fresh(id)) all_.news.tell(o->trader, note_of(t, *o));
        else if (const auto a = all_.orders.find(id)) a.tell(order_actor::fill{t});
      }
    for (const std::int64_t id : round_.withdrawn)
      if (const auto a = all_.orders.find(id)) a.tell(order_actor::reload{});
    all_.news.publish(book_.best(depth_shown), round_.made);
    for (pending& p : answers_) answer(p);
    answers_.clear();
    round_ = {};
  }

  void answer(pending& p) {
    if (!p.look_up) return p.to.set_value(std::move(p.what));
    if (std::optional<receipt> r = all_.data.find(p.what.what.id)) p.to.set_value(std::move(*r));
  }

  /// The order, if it was placed in this round.
  [[nodiscard]] const order* fresh(std::int64_t id) const {
    if (round_.placed.empty() || id < round_.placed[0].what.id) return nullptr;
    return &round_.placed[static_cast<std::size_t>(id - round_.placed[0].what.id)].what;
  }

  void count(std::chrono::steady_clock::duration wrote) {
    const auto add = [](std::atomic<std::uint64_t>& to, std::uint64_t n) {
      to.fetch_add(n, std::memory_order_relaxed);
    };
    add(all_.count.rounds, 1);
    add(all_.count.orders, round_.placed.size());
    add(all_.count.trades, round_.made.size());
    add(all_.count.withdrawn, round_.withdrawn.size());
    add(all_.count.write_us, static_cast<std::uint64_t>(wrote / 1us));
  }

  /// After a start: those that are there learn what the database has.
  void tell_orders(const std::vector<order>& open) {
    std::unordered_map<std::int64_t, const order*> by_id;
    for (const order& o : open) by_id[o.id] = &o;
    for (const std::int64_t id : all_.orders.ids()) {
      const auto a = all_.orders.find(id);
      if (!a) continue;
      if (const auto o = by_id.find(id); o != by_id.end()) a.tell(order_actor::is_now{*o->second});
      else a.tell(order_actor::reload{});
    }
    for (const order& o : open)
      if (!all_.orders.find(o.id)) all_.orders.add(all_, o);
  }

  /// Trades of a round that was written though its engine did not learn of it.
  [[nodiscard]] std::vector<trade> missed() {
    const std::vector<trade> known = all_.news.tape();
    std::vector<trade> all;
    for (const trade& t : all_.data.last_trades(round_most))
      if (t.id > known.back().id) all.push_back(t);
    return all;
  }

  services& all_;
  book book_;
  key_list keys_;
  std::int64_t next_order_ = 1, next_trade_ = 1;
  round round_;
  std::vector<pending> answers_;
};

}  // namespace

void run_engine(services& all, engine_box& box) { engine{all}.run(box); }

order_actor::order_actor(services* all, const order& o, const std::shared_ptr<bool>& first) : all_{all}, order_{o} {
  if (std::exchange(*first, false)) look_at_it();
  else on(reload{});
  if (order_.is_open() && order_.expires_ms != 0)
    send_after(std::chrono::milliseconds{std::max<std::int64_t>(0, order_.expires_ms - now_ms())}, expire{order_.id});
}

void order_actor::on(const fill& f) {
  order_.remaining -= f.what.quantity;
  all_->news.tell(order_.trader, note_of(f.what, order_));
  look_at_it();
}

void order_actor::on(const is_now& i) {
  order_ = i.what;
  look_at_it();
}

void order_actor::on(reload) {
  if (const std::optional<receipt> r = all_->data.find(order_.id)) order_ = r->what;
  all_->news.tell(order_.trader, R"({"order":)" + to_json(order_) + "}");
  look_at_it();
}

void order_actor::on(expire e) { all_->engine.tell(e); }

void order_actor::look_at_it() {
  if (order_.is_open()) return;
  all_->orders.remove(order_.id);
  stop();
}

void desk::add(services& all, const order& o) {
  ramie::actor_ref<order_actor> a = pool.spawn(&all, o, std::make_shared<bool>(true));
  const std::lock_guard guard{lock_};
  all_.insert_or_assign(o.id, std::move(a));
}

ramie::actor_ref<order_actor> desk::find(std::int64_t id) const {
  const std::lock_guard guard{lock_};
  const auto found = all_.find(id);
  return found == all_.end() ? ramie::actor_ref<order_actor>{} : found->second;
}

void desk::remove(std::int64_t id) {
  const std::lock_guard guard{lock_};
  all_.erase(id);
}

std::vector<std::int64_t> desk::ids() const {
  const std::lock_guard guard{lock_};
  std::vector<std::int64_t> all;
  for (const auto& [id, a] : all_) all.push_back(id);
  return all;
}

}  // namespace exchange
