#include "api.hpp"

#include "page.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <string>

namespace exchange {

namespace {

namespace http = ramie::http;
using nlohmann::json;
using namespace std::chrono_literals;

constexpr std::size_t request_most = 4096;  // bytes of a request's JSON: it has five short fields
constexpr auto patience = 5s;               // for the engine's answer: a guess, longer than a restart of it
// So that sums fit 64 bits many times over.
constexpr std::int64_t price_most = 1'000'000'000, quantity_most = 1'000'000'000;

[[noreturn]] void refuse(int status, const std::string& why) {
  throw http::status_error{status, json{{"error", why}}.dump() + "\n"};
}

std::int64_t number_in(const json& j, const char* name, std::int64_t most) {
  const auto found = j.find(name);
  if (found == j.end() || !found->is_number_integer() || *found < 1 || *found > most)
    refuse(400, std::string{"\""} + name + "\" has to be a whole number from 1 to " + std::to_string(most));
  return found->get<std::int64_t>();
}

std::string text_in(const json& j, const char* name, std::size_t least, std::size_t most) {
  const auto found = j.find(name);
  if (found == j.end() && least == 0) return {};
  if (found == j.end() || !found->is_string() || found->get_ref<const std::string&>().size() < least ||
      found->get_ref<const std::string&>().size() > most ||
      found->get_ref<const std::string&>().find('\0') != std::string::npos)
    refuse(400, std::string{"\""} + name + "\" has to be a text of " + std::to_string(least) + " to " +
                    std::to_string(most) + " bytes");
  return *found;
}

place read_order(http::request& rq) {
  const json j = json::parse(rq.body(request_most), nullptr, false);
  if (!j.is_object()) refuse(400, "the body has to be a JSON object");
  place p;
  p.what.trader = text_in(j, "trader", 1, 40);
  p.key = text_in(j, "key", 0, 80);
  const std::string what = text_in(j, "side", 1, 4);
  if (what != "buy" && what != "sell") refuse(400, "\"side\" has to be \"buy\" or \"sell\"");
  p.what.what = what == "buy" ? side::buy : side::sell;
  p.what.price = number_in(j, "price", price_most);
  p.what.quantity = p.what.remaining = number_in(j, "quantity", quantity_most);
  if (j.contains("good_for_ms")) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    p.what.expires_ms = now / 1ms + number_in(j, "good_for_ms", 86'400'000);
  }
  return p;
}

/// f(), whose failures become responses. 503: try again, with the same key.
template <class F>
auto answered(services& all, F f) {
  try {
    return f();
  } catch (const not_open& e) {
    refuse(404, e.what());
  } catch (const ramie::postgres::connection_error&) {
  } catch (const ramie::postgres::query_error&) {
  } catch (const ramie::actor_down&) {
  } catch (const ramie::broken_reply&) {
  } catch (const ramie::mailbox_full&) {
  } catch (const ramie::timeout_error&) {
  }
  all.count.refused.fetch_add(1, std::memory_order_relaxed);
  refuse(503, "it is not known whether this was carried out; ask again with the same key");
}

void place_order(services& all, http::request& rq, http::response& rs) {
  place p = read_order(rq);
  const receipt r = answered(all, [&] {
    if (!p.key.empty())
      if (auto known = all.data.find(p.what.trader, p.key)) return *std::move(known);
    return all.engine.ask_for(patience, std::move(p));
  });
  rs.status(201).send_json(to_json(r));
}

void show_order(services& all, std::int64_t id, http::response& rs) {
  const auto found = answered(all, [&] { return all.data.find(id); });
  if (!found) refuse(404, "there is no such order");
  rs.send_json(to_json(*found));
}

/// Only what is open: its actor knows, without the database.
void show_state(services& all, std::int64_t id, http::response& rs) {
  const auto a = all.orders.find(id);
  if (!a) return show_order(all, id, rs);
  try {
    rs.send_json(to_json(a.ask_for(patience, order_actor::get{})));
  } catch (const ramie::error&) {
    show_order(all, id, rs);  // it has just ended
  }
}

void withdraw_order(services& all, std::int64_t id, http::request& rq, http::response& rs) {
  const receipt r = answered(
      all, [&] { return all.engine.ask_for(patience, withdraw{id, rq.query("trader").value_or(std::string{})}); });
  rs.send_json(to_json(r.what));
}

void listen(services& all, http::request& rq, http::websocket& ws) {
  feed::listener l{all.news, rq.query("trader").value_or(std::string{})};
  auto reader = ramie::spawn([&] {
    try {
      while (ws.receive()) {
      }
    } catch (const ramie::error&) {  // the connection broke, or the client is silent for too long
    }
    l.close();
  });
  try {
    while (const auto news = l.next()) ws.send(*news);
    ws.close(1001, "bye");
  } catch (const ramie::error&) {
  }
  reader.request_stop();
  try {
    reader.join();
  } catch (const ramie::cancelled&) {
  }
}

std::string metrics(services& all, ramie::runtime& machine) {
  std::string text = ramie::to_prometheus(machine.statistics());
  const auto add = [&](const char* name, const char* kind, const char* help, double value) {
    text += std::string{"# HELP exchange_"} + name + " " + help + "\n# TYPE exchange_" + name + " " + kind +
            "\nexchange_" + name + " " + json(value).dump() + "\n";
  };
  const auto count = [](const std::atomic<std::uint64_t>& c) {
    return static_cast<double>(c.load(std::memory_order_relaxed));
  };
  add("orders_total", "counter", "Orders that were accepted.", count(all.count.orders));
  add("trades_total", "counter", "Trades.", count(all.count.trades));
  add("withdrawn_total", "counter", "Orders that were withdrawn or whose time was over.", count(all.count.withdrawn));
  add("refused_total", "counter", "Requests that were answered with 503.", count(all.count.refused));
  add("rounds_total", "counter", "Transactions of the engine.", count(all.count.rounds));
  add("write_seconds_total", "counter", "Time that those took.", count(all.count.write_us) / 1e6);
  add("engine_starts_total", "counter", "Starts of the engine, the first among them.", count(all.count.starts));
  add("open_orders", "gauge", "Orders that wait.", static_cast<double>(all.orders.ids().size()));
  add("listeners", "gauge", "WebSocket clients.", static_cast<double>(all.news.listeners()));
  const ramie::postgres::pool_statistics db = all.data.statistics();
  add("database_connections", "gauge", "Connections to the database.", static_cast<double>(db.open));
  add("database_waiting", "gauge", "Fibers that wait for one.", static_cast<double>(db.waiting));
  return text;
}

}  // namespace

void add_routes(http::server& site, services& all, ramie::runtime& machine) {
  site.get("/", [](http::request&, http::response& rs) {
    rs.header("content-type", "text/html; charset=utf-8").compressed().send(page);
  });
  site.post("/api/orders", [&](http::request& rq, http::response& rs) { place_order(all, rq, rs); });
  site.get("/api/orders/{id}", [&](http::request&, http::response& rs, std::int64_t id) { show_order(all, id, rs); });
  site.get("/api/orders/{id}/state",
           [&](http::request&, http::response& rs, std::int64_t id) { show_state(all, id, rs); });
  site.erase("/api/orders/{id}",
             [&](http::request& rq, http::response& rs, std::int64_t id) { withdraw_order(all, id, rq, rs); });
  site.get("/api/book", [&](http::request&, http::response& rs) { rs.send_json(all.news.book()); });
  site.get("/api/trades", [&](http::request&, http::response& rs) {
    std::string text = "[";
    for (const trade& t : all.news.tape()) text += (text.size() == 1 ? "" : ",") + to_json(t);
    rs.send_json(text += "]");
  });
  site.upgrade("/api/feed", [&](http::request& rq, http::websocket& ws) { listen(all, rq, ws); });
  site.get("/metrics", [&](http::request&, http::response& rs) {
    rs.header("content-type", "text/plain; version=0.0.4").send(metrics(all, machine));
  });
}

}  // namespace exchange
