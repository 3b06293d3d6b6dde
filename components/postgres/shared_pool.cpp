// Statements of many fibers on few connections, each of which stays in libpq's pipeline mode.
//
//  S1 Under the connection's `lock`, a caller gives libpq its statement and a mark (sync) behind it, and puts its record
//     behind those that wait: so results belong to records in that order. The mark makes each statement a transaction of
//     its own, which fails alone.
//  S2 libpq writes at once what the socket takes. Who finds that something is left sends it as the socket allows, and all
//     that others leave meanwhile: `flushing`, under `lock`, says that somebody does. The wait is shielded, and bounded by
//     write_time: half a statement would end the connection for all.
//  S3 One fiber for each connection reads, under `lock`, and gives each record its result. A caller that is cancelled
//     leaves its record behind, which gets its result as others do.
//  S4 If anything fails, the reader closes the connection, and fails the records that wait. The next caller makes another
//     one. A sender that fails closes the socket alone, which wakes the reader.
//  S5 A statement that begins a transaction would draw those behind it into it. Its result says so before theirs are
//     looked at: the connection is closed, the server rolls back, and none of them has been told of a success.
//  S6 The first statement of a text has its preparation in front of it, and those behind it use the same name without
//     waiting. If the preparation fails, theirs fail for want of the name, and have not been carried out; so they are sent
//     once more, unprepared.
//  S7 A record has a permit of `free`, and counts for its connection, until it is finished. Each goes to the connection
//     with the fewest, so none has more than under_way_most.
#include <ramie/postgres/shared_pool.hpp>

#include "session.hpp"

#include <ramie/fiber.hpp>

#include <algorithm>
#include <deque>
#include <mutex>
#include <vector>

namespace ramie::postgres {

namespace {

struct shared_record {
  bool prepares = false;  // the first result is that of the preparation
  std::string sql, name;  // "": unprepared
  result value;
  std::optional<query_error> refused;  // by the server
  std::exception_ptr failure;          // anything else
  event done;
};

struct shared_link {
  explicit shared_link(const connection_options& o) : libpq{o} { libpq.check(PQenterPipelineMode(libpq.pq)); }
  connection::state libpq;  // `lock`, but for the socket
  mutex lock;
  std::deque<std::shared_ptr<shared_record>> waiting;
  bool flushing = false;
  bool gone = false;
};

/// SQLSTATE of a prepared statement that is not there.
constexpr const char* no_such_name = "26000";

/// What libpq says of a connection that broke, but for the line's end.
std::string reason(const shared_link& l) {
  std::string text = PQerrorMessage(l.libpq.pq);
  while (text.ends_with('\n')) text.pop_back();
  return text.empty() ? "the connection broke" : text;
}

bool begins_a_transaction(PGresult* r) noexcept {
  const std::string_view tag = PQcmdStatus(r);
  return tag == "BEGIN" || tag == "START TRANSACTION";
}

}  // namespace

struct shared_pool::state {
  /// One connection, or the place for one.
  struct slot {
    mutex connecting;  // held while one fiber connects
    std::shared_ptr<shared_link> to;
    join_handle<void> reader;  // `connecting`
    std::size_t load = 0;      // S7
  };

  explicit state(const shared_pool_options& o)
      : wanted{o}, free{static_cast<std::ptrdiff_t>(o.most * o.under_way_most)}, slots(o.most) {}

  const shared_pool_options wanted;
  counting_semaphore<> free;  // S7
  mutable mutex lock;         // `to` and `load` of slots, and the counts
  std::vector<slot> slots;
  shared_pool_statistics counts;

  // ---- which connection --------------------------------------------------------------------------------------------

  /// An idle one that is open, or a new one while there may be more, or the one with the fewest.
  slot& pick() {
    const std::lock_guard guard{lock};
    const auto rank = [](const slot& s) { return std::pair{s.load, s.to == nullptr}; };
    slot& least = *std::ranges::min_element(slots, std::less<>{}, rank);
    ++least.load;
    ++counts.under_way;
    ++counts.statements;
    return least;
  }
  void finish(slot& s) {
    {
      const std::lock_guard guard{lock};
      --s.load;
      --counts.under_way;
    }
    free.release();
  }
  std::shared_ptr<shared_link> current(const slot& s) const {
    const std::lock_guard guard{lock};
    return s.to;
  }
  static bool is_over(shared_link& l) {
    const std::lock_guard guard{l.lock};
    return l.gone;
  }
  std::shared_ptr<shared_link> get(slot& s) {
    if (auto l = current(s); l && !is_over(*l)) return l;
    const std::lock_guard one{s.connecting};
    if (auto l = current(s); l && !is_over(*l)) return l;
    if (s.reader.joinable()) s.reader.join();
    auto fresh = std::make_shared<shared_link>(connection_options{wanted.where, wanted.connect_time});
    {
      const std::lock_guard guard{lock};
      s.to = fresh;
      ++counts.connected;
    }
    s.reader = without_scoped_values([&] { return spawn([this, &s, fresh] { read(s, *fresh); }); });
    return fresh;
  }

  // ---- S3 and S4 ---------------------------------------------------------------------------------------------------

  void read(slot& s, shared_link& l) {
    std::vector<std::shared_ptr<shared_record>> finished;
    std::exception_ptr failure;
    try {
      for (;;) {
        l.libpq.socket.wait_readable();
        {
          const std::lock_guard guard{l.lock};
          if (PQconsumeInput(l.libpq.pq) != 1) throw connection_error{reason(l)};
          take(l, finished);
        }
        tell(s, finished);
      }
    } catch (const cancelled&) {
      failure = std::make_exception_ptr(connection_error{"the pool ends"});
    } catch (const net::io_error& e) {
      failure = std::make_exception_ptr(connection_error{e.what()});
    } catch (...) {
      failure = std::current_exception();
    }
    tell(s, finished);
    {
      const std::lock_guard guard{l.lock};
      l.gone = true;
      l.libpq.socket.close();  // somebody may wait for it, so the object stays
      PQfinish(std::exchange(l.libpq.pq, nullptr));
      finished.assign(l.waiting.begin(), l.waiting.end());
      l.waiting.clear();
    }
    for (const auto& r : finished)
      if (!r->failure) r->failure = failure;
    tell(s, finished);
    const std::lock_guard guard{lock};
    s.to.reset();
  }
  void tell(slot& s, std::vector<std::shared_ptr<shared_record>>& finished) {
    for (const auto& r : finished) {
      finish(s);
      r->done.set();
    }
    finished.clear();
  }
  static void take(shared_link& l, std::vector<std::shared_ptr<shared_record>>& finished) {
    bool at_end = false;  // of a statement's results
    while (!l.waiting.empty() && PQisBusy(l.libpq.pq) == 0) {
      result r{PQgetResult(l.libpq.pq)};
      if (!r) {
        if (std::exchange(at_end, true)) throw connection_error{reason(l)};  // somebody waits for nothing: it broke
        continue;
      }
      at_end = false;
      shared_record& first = *l.waiting.front();
      if (PQresultStatus(r.get()) == PGRES_PIPELINE_SYNC) {
        finished.push_back(std::move(l.waiting.front()));
        l.waiting.pop_front();
        continue;
      }
      if (begins_a_transaction(r.get())) {
        first.failure = std::make_exception_ptr(
            usage_error{"ramie: postgres: a statement for a shared_pool must not begin a transaction"});
        throw connection_error{"closed: another statement on it has begun a transaction"};
      }
      if (is_failure(r.get())) {
        if (!first.refused) first.refused = error_of(r.get());
        if (first.prepares || first.refused->sqlstate() == no_such_name) l.libpq.names.forget(first.sql, first.name);
      }
      first.prepares = false;
      first.value = std::move(r);
    }
  }

  // ---- S1 and S2 ---------------------------------------------------------------------------------------------------

  /// False if the connection has gone: nothing was sent then.
  bool put(shared_link& l, const std::shared_ptr<shared_record>& mine, bool is_prepared, parameter_list& values) {
    bool flush = false;
    {
      const std::lock_guard guard{l.lock};
      if (l.gone || !l.libpq.is_open()) return false;
      if (is_prepared) name_it(l, *mine);
      l.waiting.push_back(mine);
      if (!hand_over(l.libpq.pq, *mine, values)) l.libpq.socket.close();  // S4
      else if (!l.flushing) l.flushing = flush = PQflush(l.libpq.pq) == 1;
    }
    if (flush) send_rest(l);
    return true;
  }
  static void name_it(shared_link& l, shared_record& r) {
    r.name = l.libpq.names.find(r.sql);
    if (!r.name.empty()) return;
    r.name = l.libpq.names.next();
    if (r.name.empty()) return;
    r.prepares = true;
    l.libpq.names.add(r.sql, r.name);
  }
  static bool hand_over(PGconn* pq, const shared_record& r, parameter_list& values) {
    if (r.prepares && PQsendPrepare(pq, r.name.c_str(), r.sql.c_str(), 0, nullptr) != 1) return false;
    const int sent =
        r.name.empty()
            ? PQsendQueryParams(pq, r.sql.c_str(), values.size(), nullptr, values.data(), nullptr, nullptr, 0)
            : PQsendQueryPrepared(pq, r.name.c_str(), values.size(), values.data(), nullptr, nullptr, 0);
    return sent == 1 && PQpipelineSync(pq) == 1;
  }
  void send_rest(shared_link& l) const {
    try {
      shield([&] {
        with_timeout(wanted.write_time, [&] {
          for (bool more = true; more;) {
            l.libpq.socket.wait_writable();
            const std::lock_guard guard{l.lock};
            l.flushing = more = !l.gone && PQflush(l.libpq.pq) == 1;
          }
        });
      });
    } catch (const error&) {
      const std::lock_guard guard{l.lock};
      l.flushing = false;
      l.libpq.socket.close();
    }
  }
};

shared_pool::shared_pool(const shared_pool_options& o) {
  if (o.most == 0 || o.under_way_most == 0)
    throw invalid_argument{"ramie: postgres: shared_pool_options: most and under_way_most are at least 1"};
  state_ = std::make_unique<state>(o);
}

shared_pool::~shared_pool() {
  shield([&] {
    for (state::slot& s : state_->slots) {
      if (!s.reader.joinable()) continue;
      s.reader.request_stop();
      s.reader.join();
    }
  });
}

result shared_pool::run(std::string_view sql, bool is_prepared, std::initializer_list<parameter> values) {
  state& s = *state_;
  parameter_list list{values};
  for (bool again = false;; again = true) {
    const auto mine = std::make_shared<shared_record>();
    mine->sql = sql;
    s.free.acquire();
    state::slot& where = s.pick();
    try {
      while (!s.put(*s.get(where), mine, is_prepared && !again, list)) {
      }
    } catch (...) {
      s.finish(where);
      throw;
    }
    mine->done.wait();
    if (mine->failure) std::rethrow_exception(mine->failure);
    if (!mine->refused) return std::move(mine->value);
    if (again || mine->refused->sqlstate() != no_such_name) throw std::move(*mine->refused);  // S6
  }
}

shared_pool_statistics shared_pool::statistics() const {
  const std::lock_guard guard{state_->lock};
  shared_pool_statistics now = state_->counts;
  for (const state::slot& s : state_->slots)
    if (s.to) ++now.open;
  return now;
}

}  // namespace ramie::postgres
