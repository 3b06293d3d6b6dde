// Records on their way, and the reports of what became of them.
//
//  P1 Each record has a ticket, in `tickets` under `lock`, whose address librdkafka gives back with the report. The
//     ticket leads to what its caller waits for, which both own: so a caller may give up.
//  P2 One fiber, the driver, waits for the producer's queue and reads the reports. It takes a ticket out, and when it was
//     the last of its call, wakes the caller.
//  P3 librdkafka refuses a record while its queue is full. A report makes room once its event has been destroyed; only
//     then the driver takes its records out of the count `held`, counts `reports` up, and wakes the senders that wait for
//     room. A sender reads `reports` before it tries, so it sees a report between the refusal and its wait. If none came
//     and nothing else is held, none will come: the record alone is too large for the queue.
//  P4 `entering` lets one call at a time put records into the queue, in the order in which they came. It is a semaphore,
//     since deadlines end waits for one, and not those for a lock.
#include "handle.hpp"

#include <ramie/fiber.hpp>

#include <list>
#include <mutex>

namespace ramie::kafka {

namespace {

/// One call of send or send_all.
struct sending {
  explicit sending(std::size_t n) : left{n}, places(n) {}
  std::size_t left;  // the producer's lock, as the next two
  std::vector<place> places;
  rd_kafka_resp_err_t failure = RD_KAFKA_RESP_ERR_NO_ERROR;  // the first
  event done;
};

struct ticket {
  std::shared_ptr<sending> of;
  std::size_t number;  // of the record in its call
  std::list<ticket>::iterator self{};
};

rd_kafka_vu_t argument(rd_kafka_vtype_t type) {
  rd_kafka_vu_t v{};
  v.vtype = type;
  return v;
}

void add_bytes(std::vector<rd_kafka_vu_t>& to, rd_kafka_vtype_t type, const std::optional<std::string>& bytes) {
  if (!bytes) return;
  rd_kafka_vu_t v = argument(type);
  v.u.mem.ptr = const_cast<char*>(bytes->data());  // NOLINT(cppcoreguidelines-pro-type-const-cast): it is copied
  v.u.mem.size = bytes->size();
  to.push_back(v);
}

/// Points into the record.
std::vector<rd_kafka_vu_t> arguments_for(const record& r, ticket& t) {
  std::vector<rd_kafka_vu_t> all;
  all.reserve(6 + r.headers.size());
  rd_kafka_vu_t v = argument(RD_KAFKA_VTYPE_TOPIC);
  v.u.cstr = r.topic.c_str();
  all.push_back(v);
  v = argument(RD_KAFKA_VTYPE_PARTITION);
  v.u.i32 = r.partition;
  all.push_back(v);
  v = argument(RD_KAFKA_VTYPE_MSGFLAGS);
  v.u.i = RD_KAFKA_MSG_F_COPY;
  all.push_back(v);
  v = argument(RD_KAFKA_VTYPE_OPAQUE);
  v.u.ptr = &t;
  all.push_back(v);
  add_bytes(all, RD_KAFKA_VTYPE_KEY, r.key);
  add_bytes(all, RD_KAFKA_VTYPE_VALUE, r.value);
  for (const auto& [name, value] : r.headers) {
    v = argument(RD_KAFKA_VTYPE_HEADER);
    v.u.header.name = name.c_str();
    v.u.header.val = value.data();
    v.u.header.size = static_cast<ssize_t>(value.size());
    all.push_back(v);
  }
  return all;
}

}  // namespace

struct producer::state {
  explicit state(rd_kafka_t* made) : client{made}, main{queue_ptr{rd_kafka_queue_get_main(made)}} {}

  rd_kafka_t* const client;
  watched_queue main;
  counting_semaphore<> entering{1};  // P4
  mutable mutex lock;                // what follows
  condition_variable room;
  std::list<ticket> tickets;
  std::size_t held = 0;  // P3
  std::uint64_t reports = 0;
  producer_statistics counts;
  std::string trouble;
  join_handle<void> driver;

  // P2.
  void drive() {
    for (;;) {
      while (event_ptr e = main.poll()) {
        if (rd_kafka_event_type(e.get()) == RD_KAFKA_EVENT_ERROR) {
          const std::lock_guard guard{lock};
          trouble = problem_of(e.get());
        }
        std::size_t n = 0;
        for (; const rd_kafka_message_t* m = rd_kafka_event_message_next(e.get()); ++n) note(*m);
        e.reset();
        tell_room(n);
        this_fiber::yield();  // there may be more of them for a long time
      }
      main.wait();
    }
  }
  void note(const rd_kafka_message_t& m) {
    std::shared_ptr<sending> finished;
    {
      const std::lock_guard guard{lock};
      auto& t = *static_cast<ticket*>(m._private);
      sending& of = *t.of;
      if (m.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        of.places[t.number] = {m.partition, m.offset};
        ++counts.confirmed;
      } else {
        if (of.failure == RD_KAFKA_RESP_ERR_NO_ERROR) of.failure = m.err;
        ++counts.failed;
      }
      if (--of.left == 0) finished = t.of;
      tickets.erase(t.self);
    }
    if (finished) finished->done.set();
  }
  void tell_room(std::size_t released) {
    {
      const std::lock_guard guard{lock};
      held -= released;
      ++reports;
    }
    room.notify_all();
  }

  /// P3.
  void enter(const record& r, const std::shared_ptr<sending>& of, std::size_t number) {
    for (;;) {
      std::list<ticket>::iterator mine;
      std::uint64_t seen = 0;
      {
        const std::lock_guard guard{lock};
        mine = tickets.insert(tickets.end(), {of, number});
        mine->self = mine;
        ++held;
        seen = reports;
      }
      std::vector<rd_kafka_vu_t> arguments;
      failure_ptr refused;
      try {
        arguments = arguments_for(r, *mine);
        refused.reset(rd_kafka_produceva(client, arguments.data(), arguments.size()));
      } catch (...) {
        take_out(mine);
        throw;
      }
      if (!refused) return;
      take_out(mine);
      if (rd_kafka_error_code(refused.get()) != RD_KAFKA_RESP_ERR__QUEUE_FULL) throw_if(refused.release());
      std::unique_lock guard{lock};
      if (reports == seen && held == 0) throw_if(refused.release());
      ++counts.waits;
      room.wait(guard, [&] { return reports != seen; });
    }
  }
  void take_out(std::list<ticket>::iterator mine) {
    {
      const std::lock_guard guard{lock};
      tickets.erase(mine);
      --held;
    }
    room.notify_all();  // `flush`
  }
};

producer::producer(const options& o) {
  configuration c{o};
  for (const auto& [name, value] : o.settings) c.set(name, value);
  rd_kafka_t* const made = c.make(RD_KAFKA_PRODUCER, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
  try {
    state_ = std::make_unique<state>(made);
    state_->driver =
        without_scoped_values([&] { return spawn({.name = "kafka"}, [s = state_.get()] { s->drive(); }); });
  } catch (...) {
    state_.reset();
    rd_kafka_destroy(made);
    throw;
  }
}

producer::~producer() {
  rd_kafka_t* const made = state_->client;
  state_->driver.request_stop();
  shield([&] {
    try {
      state_->driver.join();
    } catch (const cancelled&) {
    }
    // Its queues have to be given back before; the tickets outlive it.
    std::list<ticket> left;
    left.swap(state_->tickets);
    state_.reset();
    blocking([&] { rd_kafka_destroy(made); });
  });
}

place producer::send(const record& r) { return send_all(std::span{&r, 1})[0]; }

std::vector<place> producer::send_all(std::span<const record> all) {
  if (all.empty()) return {};
  state& s = *state_;
  const auto mine = std::make_shared<sending>(all.size());
  s.entering.acquire();
  try {
    for (std::size_t i = 0; i < all.size(); ++i) s.enter(all[i], mine, i);
  } catch (...) {
    s.entering.release();
    throw;
  }
  s.entering.release();
  mine->done.wait();
  if (mine->failure != RD_KAFKA_RESP_ERR_NO_ERROR) throw error_of(mine->failure, problem());
  return std::move(mine->places);
}

void producer::flush() {
  std::unique_lock guard{state_->lock};
  state_->room.wait(guard, [this] { return state_->tickets.empty(); });
}

producer_statistics producer::statistics() const {
  const std::lock_guard guard{state_->lock};
  producer_statistics now = state_->counts;
  now.under_way = state_->tickets.size();
  return now;
}

std::string producer::problem() const {
  const std::lock_guard guard{state_->lock};
  return state_->trouble;
}

rd_kafka_s* producer::native() noexcept { return state_->client; }

}  // namespace ramie::kafka
