// A member of a group.
//
//  C1 There is no driver: `receive` polls the consumer's queue, and waits for its eventfd when nothing is there. librdkafka
//     takes a member that does not poll for dead, so that wait polls now and then, too.
//  C2 librdkafka hands changes of partitions over as events, and waits until they are answered by assign or unassign. So
//     the user's handler runs in the receiving fiber between the two, where it may suspend, and commit.
//  C3 A commit is sent with a number, and its result comes with that number in a queue of its own. `committing` lets one
//     at a time wait for results; those of commits that were given up are dropped by the next one.
//  C4 `done` has, for each partition, up to where `receive` has handed out messages and no commit has said so.
#include "handle.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>

namespace ramie::kafka {

namespace {

using position = std::pair<std::string, int>;

/// librdkafka tries again by itself.
bool is_of_connections(rd_kafka_resp_err_t code) noexcept {
  return code == RD_KAFKA_RESP_ERR__TRANSPORT || code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN ||
         code == RD_KAFKA_RESP_ERR__RESOLVE || code == RD_KAFKA_RESP_ERR__TIMED_OUT;
}

std::optional<std::string> bytes_at(const void* data, std::size_t size) {
  if (data == nullptr) return std::nullopt;
  return std::string{static_cast<const char*>(data), size};
}

message converted(const rd_kafka_message_t& m) {
  message to{.topic = rd_kafka_topic_name(m.rkt), .partition = m.partition, .offset = m.offset};
  to.key = bytes_at(m.key, m.key_len);
  to.value = bytes_at(m.payload, m.len);
  to.time_ms = rd_kafka_message_timestamp(&m, nullptr);
  rd_kafka_headers_t* all = nullptr;
  if (rd_kafka_message_headers(&m, &all) != RD_KAFKA_RESP_ERR_NO_ERROR) return to;
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0; rd_kafka_header_get_all(all, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i)
    to.headers.emplace_back(name, bytes_at(value, size).value_or(std::string{}));
  return to;
}

list_ptr empty_list(std::size_t n) {
  list_ptr l{rd_kafka_topic_partition_list_new(static_cast<int>(n))};
  if (!l) throw std::bad_alloc{};
  return l;
}

std::vector<topic_partition> names_in(const rd_kafka_topic_partition_list_t* list) {
  std::vector<topic_partition> all;
  for (int i = 0; list != nullptr && i < list->cnt; ++i)
    all.push_back({list->elems[i].topic, list->elems[i].partition});
  return all;
}

}  // namespace

struct consumer::state {
  state(rd_kafka_t* made, consumer_options c, std::chrono::milliseconds poll_every)
      : client{made},
        wanted{std::move(c)},
        poll_within{poll_every},
        messages{std::in_place, queue_ptr{rd_kafka_queue_get_consumer(made)}},
        results{std::in_place, queue_ptr{rd_kafka_queue_new(made)}} {}
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() {
    messages.reset();
    results.reset();
    if (client != nullptr) rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  }

  rd_kafka_t* client;  // null once it is closed
  const consumer_options wanted;
  const std::chrono::milliseconds poll_within;  // C1
  std::optional<watched_queue> messages, results;
  std::atomic<bool> busy{false};
  counting_semaphore<> committing{1};     // C3
  std::uintptr_t commits = 0;             // `committing`
  mutable mutex lock;                     // what follows
  std::map<position, std::int64_t> done;  // C4
  std::vector<topic_partition> mine;
  std::string trouble;

  void subscribe() {
    const list_ptr l = empty_list(wanted.topics.size());
    for (const std::string& t : wanted.topics)
      rd_kafka_topic_partition_list_add(l.get(), t.c_str(), RD_KAFKA_PARTITION_UA);
    throw_if(rd_kafka_poll_set_consumer(client));
    throw_if(blocking([&] { return rd_kafka_subscribe(client, l.get()); }));
  }

  message receive() {
    for (;;) {
      this_fiber::throw_if_stopped();
      while (const event_ptr e = messages->poll())
        if (std::optional<message> m = handle(e.get())) return *std::move(m);
      try {
        with_timeout(poll_within, [&] { messages->wait(); });
      } catch (const timeout_error&) {  // C1
      }
    }
  }
  std::optional<message> handle(rd_kafka_event_t* e) {
    switch (rd_kafka_event_type(e)) {
      case RD_KAFKA_EVENT_FETCH: {
        const rd_kafka_message_t* const m = rd_kafka_event_message_next(e);
        if (m == nullptr) return std::nullopt;
        if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR) throw error_of(m->err, rd_kafka_message_errstr(m));
        message got = converted(*m);
        const std::lock_guard guard{lock};
        done[{got.topic, got.partition}] = got.offset + 1;
        return got;
      }
      case RD_KAFKA_EVENT_REBALANCE: change_hands(e); return std::nullopt;
      case RD_KAFKA_EVENT_ERROR: {
        const bool fatal = rd_kafka_event_error_is_fatal(e) != 0;
        const rd_kafka_resp_err_t code = rd_kafka_event_error(e);
        {
          const std::lock_guard guard{lock};
          trouble = problem_of(e);
        }
        if (fatal || !is_of_connections(code)) throw error_of(code, problem_of(e), fatal);
        return std::nullopt;
      }
      default: return std::nullopt;
    }
  }

  /// C2.
  void change_hands(rd_kafka_event_t* e) {
    rd_kafka_topic_partition_list_t* const list = rd_kafka_event_topic_partition_list(e);
    const bool assigned = rd_kafka_event_error(e) == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    const rebalance news{assigned                                ? rebalance::kind::assigned
                         : rd_kafka_assignment_lost(client) != 0 ? rebalance::kind::lost
                                                                 : rebalance::kind::revoked,
                         names_in(list)};
    std::exception_ptr failure;
    const auto tell = [&] {
      try {
        if (wanted.on_rebalance) wanted.on_rebalance(news);
      } catch (...) {
        failure = std::current_exception();
      }
    };
    if (!assigned) tell();
    shield([&] { blocking([&] { answer(assigned, list); }); });
    note_hands(news);
    if (assigned) tell();
    if (failure) std::rethrow_exception(failure);
  }
  void answer(bool assigned, const rd_kafka_topic_partition_list_t* list) const {
    if (std::string_view{rd_kafka_rebalance_protocol(client)} == "COOPERATIVE")
      throw_if(assigned ? rd_kafka_incremental_assign(client, list) : rd_kafka_incremental_unassign(client, list));
    else throw_if(rd_kafka_assign(client, assigned ? list : nullptr));
  }
  void note_hands(const rebalance& news) {
    const std::lock_guard guard{lock};
    for (const topic_partition& p : news.partitions) {
      if (news.what == rebalance::kind::assigned) {
        mine.push_back(p);
      } else {
        std::erase(mine, p);
        done.erase({p.topic, p.partition});
      }
    }
  }

  /// C3. Of positions that may be committed by others meanwhile.
  void commit(const std::map<position, std::int64_t>& to) {
    if (to.empty()) return;
    const list_ptr l = empty_list(to.size());
    for (const auto& [where, offset] : to)
      rd_kafka_topic_partition_list_add(l.get(), where.first.c_str(), where.second)->offset = offset;
    committing.acquire();
    struct leaving {
      state& of;
      ~leaving() { of.committing.release(); }
    } const afterwards{*this};
    const std::uintptr_t number = ++commits;
    throw_if(rd_kafka_commit_queue(client, l.get(), results->get(), nullptr, reinterpret_cast<void*>(number)));
    for (;;) {
      while (const event_ptr e = results->poll()) {
        if (reinterpret_cast<std::uintptr_t>(rd_kafka_event_opaque(e.get())) != number) continue;
        throw_if(rd_kafka_event_error(e.get()));
        const rd_kafka_topic_partition_list_t* const each = rd_kafka_event_topic_partition_list(e.get());
        for (int i = 0; each != nullptr && i < each->cnt; ++i) throw_if(each->elems[i].err);
        return forget(to);
      }
      results->wait();
    }
  }
  void forget(const std::map<position, std::int64_t>& committed) {
    const std::lock_guard guard{lock};
    for (const auto& [where, offset] : committed)
      if (const auto at = done.find(where); at != done.end() && at->second <= offset) done.erase(at);
  }

  void close() {
    if (client == nullptr) return;
    std::exception_ptr failure;
    throw_if(rd_kafka_consumer_close_queue(client, messages->get()));
    while (rd_kafka_consumer_closed(client) == 0) {
      while (const event_ptr e = messages->poll()) {
        if (rd_kafka_event_type(e.get()) != RD_KAFKA_EVENT_REBALANCE) continue;
        try {
          change_hands(e.get());
        } catch (...) {
          if (!failure) failure = std::current_exception();
        }
      }
      if (rd_kafka_consumer_closed(client) == 0) messages->wait();
    }
    messages.reset();
    results.reset();
    blocking([&] { rd_kafka_destroy(std::exchange(client, nullptr)); });
    if (failure) std::rethrow_exception(failure);
  }
};

namespace {

template <class State>
State& open(const std::unique_ptr<State>& s) {
  if (s->client == nullptr) throw usage_error{"ramie: kafka: the consumer is closed"};
  return *s;
}

template <class State, class F>
auto use(State& s, F f) {
  if (s.busy.exchange(true, std::memory_order_acquire))
    throw usage_error{"ramie: kafka: the consumer is in use by another fiber"};
  struct leaving {
    State& of;
    ~leaving() { of.busy.store(false, std::memory_order_release); }
  } const afterwards{s};
  return f();
}

}  // namespace

consumer::consumer(const options& o, consumer_options c) {
  if (c.group.empty() || c.topics.empty())
    throw invalid_argument{"ramie: kafka: a consumer needs consumer_options::group and topics"};
  configuration all{o};
  all.set("group.id", c.group);
  all.set("enable.auto.commit", "false");
  for (const auto& [name, value] : o.settings) all.set(name, value);
  // A third: one late poll does no harm.
  const std::chrono::milliseconds within{std::max(std::stol("0" + all.get("max.poll.interval.ms")) / 3, 1L)};
  rd_kafka_t* const made = all.make(RD_KAFKA_CONSUMER, RD_KAFKA_EVENT_FETCH | RD_KAFKA_EVENT_REBALANCE |
                                                           RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_OFFSET_COMMIT);
  try {
    state_ = std::make_unique<state>(made, std::move(c), within);
  } catch (...) {
    rd_kafka_destroy(made);
    throw;
  }
  state_->subscribe();
}

consumer::~consumer() {
  try {
    close();
  } catch (...) {  // as documented
  }
}

message consumer::receive() {
  return use(open(state_), [&] { return state_->receive(); });
}

void consumer::commit() {
  state& s = open(state_);
  std::map<position, std::int64_t> now;
  {
    const std::lock_guard guard{s.lock};
    now = s.done;
  }
  s.commit(now);
}

void consumer::commit(const message& last) { open(state_).commit({{{last.topic, last.partition}, last.offset + 1}}); }

std::vector<topic_partition> consumer::assigned() const {
  const std::lock_guard guard{state_->lock};
  return state_->mine;
}

std::string consumer::problem() const {
  const std::lock_guard guard{state_->lock};
  return state_->trouble;
}

void consumer::close() {
  if (state_->client == nullptr) return;
  use(*state_, [&] { shield([&] { state_->close(); }); });
}

rd_kafka_s* consumer::native() noexcept { return state_->client; }

}  // namespace ramie::kafka
