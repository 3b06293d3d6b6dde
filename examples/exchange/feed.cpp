#include "feed.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <mutex>

namespace exchange {

namespace {

using namespace std::chrono_literals;
using nlohmann::json;

// All three are guesses: what people can follow, and what is little memory.
constexpr auto pause = 50ms;             // between two states for one listener
constexpr std::size_t tape_most = 200;   // trades
constexpr std::size_t own_most = 1'000;  // notes about own orders that wait for a slow listener; then it is ended

json json_of(const trade& t) {
  return {{"id", t.id},
          {"buy_order", t.buy_order},
          {"price", t.price},
          {"sell_order", t.sell_order},
          {"at", t.at_ms},
          {"taker", t.taker == side::buy ? "buy" : "sell"},
          {"quantity", t.quantity}};
}

json json_of(const order& o) {
  return {{"id", o.id},        {"trader", o.trader},     {"side", o.what == side::buy ? "buy" : "sell"},
          {"price", o.price},  {"quantity", o.quantity}, {"remaining", o.remaining},
          {"state", o.state()}};
}

json json_of(const std::vector<level>& levels) {
  json all = json::array();
  for (const level& l : levels) all.push_back({l.price, l.quantity});
  return all;
}

}  // namespace

std::string to_json(const trade& t) { return json_of(t).dump(); }
std::string to_json(const order& o) { return json_of(o).dump(); }
std::string to_json(const receipt& r) {
  json all = json_of(r.what);
  all["trades"] = json::array();
  for (const trade& t : r.trades) all["trades"].push_back(json_of(t));
  return all.dump();
}

feed::listener::listener(feed& of, std::string trader) : of_{of}, trader_{std::move(trader)} {
  const std::lock_guard guard{of_.lock_};
  closed_ = of_.closed_;
  of_.all_.emplace(trader_, this);
}

feed::listener::~listener() {
  const std::lock_guard guard{of_.lock_};
  const auto [begin, end] = of_.all_.equal_range(trader_);
  for (auto i = begin; i != end; ++i)
    if (i->second == this) {
      of_.all_.erase(i);
      break;
    }
}

std::optional<std::string> feed::listener::next() {
  if (seen_ != 0) ramie::this_fiber::sleep_for(pause);
  std::unique_lock guard{of_.lock_};
  of_.news_.wait(guard, [&] { return closed_ || seen_ != of_.number_ || !own_.empty(); });
  if (closed_) return std::nullopt;
  std::string text = R"({"book":)" + of_.book_ + R"(,"trades":[)";
  for (const trade& t : of_.tape_)
    if (t.id > last_trade_) text += (text.back() == '[' ? "" : ",") + to_json(t);
  text += R"(],"own":[)";
  for (const std::string& note : own_) text += (text.back() == '[' ? "" : ",") + note;
  own_.clear();
  seen_ = of_.number_;
  if (!of_.tape_.empty()) last_trade_ = of_.tape_.back().id;
  return text += "]}";
}

void feed::listener::close() {
  const std::lock_guard guard{of_.lock_};
  closed_ = true;
  of_.news_.notify_all();
}

void feed::publish(const depth& d, const std::vector<trade>& fresh) {
  std::string text = json{{"bids", json_of(d.bids)}, {"asks", json_of(d.asks)}}.dump();
  const std::lock_guard guard{lock_};
  book_ = std::move(text);
  for (const trade& t : fresh) tape_.push_back(t);
  while (tape_.size() > tape_most) tape_.pop_front();
  ++number_;
  news_.notify_all();
}

void feed::tell(const std::string& trader, const std::string& json) {
  const std::lock_guard guard{lock_};
  const auto [begin, end] = all_.equal_range(trader);
  for (auto i = begin; i != end; ++i) {
    listener& l = *i->second;
    if (l.own_.size() < own_most) l.own_.push_back(json);
    else l.closed_ = true;  // it can ask for its orders when it is back
  }
  if (begin != end) news_.notify_all();
}

void feed::close() {
  const std::lock_guard guard{lock_};
  closed_ = true;
  for (const auto& [trader, l] : all_) l->closed_ = true;
  news_.notify_all();
}

std::size_t feed::listeners() const {
  const std::lock_guard guard{lock_};
  return all_.size();
}
std::string feed::book() const {
  const std::lock_guard guard{lock_};
  return book_;
}
std::vector<trade> feed::tape() const {
  const std::lock_guard guard{lock_};
  return {tape_.begin(), tape_.end()};
}

}  // namespace exchange
