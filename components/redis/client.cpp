// One connection for many fibers.
//
//  M1 Under `lock`, a caller puts its bytes behind those that wait to be sent, and its record behind those that wait for
//     replies: so replies belong to records in that order.
//  M2 The holder of the `writing` lock takes all bytes that wait and writes them; those who come meanwhile find their
//     bytes sent when they get the lock. A write is shielded from stops and deadlines of the one who happens to do it,
//     and bounded by write_time: half a command would end the connection for all.
//  M3 One fiber for each connection reads, and gives each record its replies. A caller that is cancelled leaves its
//     record behind, which gets its replies as others do.
//  M4 If reading or writing fails, the connection is closed; the reader fails all records that wait, under `lock`, and
//     marks the connection as gone. The next caller makes another one. Bytes that were not sent go with their records.
#include "wire.hpp"

#include <ramie/fiber.hpp>

#include <deque>
#include <mutex>

namespace ramie::redis {

namespace {

struct record {
  explicit record(std::size_t n) : wanted{n} { replies.reserve(n); }
  const std::size_t wanted;
  std::vector<reply> replies;
  std::exception_ptr failure;
  event done;
};

struct link {
  explicit link(const options& o) : replies{o.reply_most}, stream{connect(o, replies)} {}
  parser replies;
  net::any_stream stream;
  mutex writing;  // M2
  // The client's lock:
  std::string unsent;
  std::deque<std::shared_ptr<record>> waiting;
  bool gone = false;
};

}  // namespace

struct client::state {
  explicit state(options o) : wanted{std::move(o)} {}
  const options wanted;
  mutex lock;
  mutex connecting;          // held while one fiber connects
  std::shared_ptr<link> to;  // lock
  join_handle<void> reader;  // `connecting`
  client_statistics counts;  // lock

  std::shared_ptr<link> current() {
    const std::lock_guard guard{lock};
    return to && !to->gone ? to : nullptr;
  }
  std::shared_ptr<link> get() {
    if (auto l = current()) return l;
    const std::lock_guard one{connecting};
    if (auto l = current()) return l;
    if (reader.joinable()) reader.join();
    auto fresh = std::make_shared<link>(wanted);
    {
      const std::lock_guard guard{lock};
      to = fresh;
      ++counts.connected;
    }
    reader = without_scoped_values([&] { return spawn([this, fresh] { read(*fresh); }); });
    return fresh;
  }
  /// M3, M4.
  void read(link& l) {
    std::exception_ptr failure;
    try {
      for (;;) give(l, read_reply(l.stream, l.replies));
    } catch (const cancelled&) {
      failure = std::make_exception_ptr(connection_error{"the client ends"});
    } catch (...) {
      failure = std::current_exception();
    }
    l.stream.close();
    std::deque<std::shared_ptr<record>> left;
    {
      const std::lock_guard guard{lock};
      l.gone = true;
      left.swap(l.waiting);
    }
    for (const auto& r : left) {
      r->failure = failure;
      r->done.set();
    }
  }
  void give(link& l, reply&& r) {
    std::shared_ptr<record> finished;
    {
      const std::lock_guard guard{lock};
      if (l.waiting.empty()) throw connection_error{"a reply that nobody has asked for"};
      record& first = *l.waiting.front();
      first.replies.push_back(std::move(r));
      if (first.replies.size() < first.wanted) return;
      finished = std::move(l.waiting.front());
      l.waiting.pop_front();
    }
    finished->done.set();
  }
  /// M2.
  void send(link& l) {
    const std::lock_guard one{l.writing};
    std::string bytes;
    {
      const std::lock_guard guard{lock};
      bytes.swap(l.unsent);
      if (bytes.empty() || l.gone) return;
      ++counts.writes;
    }
    try {
      shield([&] { with_timeout(wanted.write_time, [&] { l.stream.write_all(bytes); }); });
    } catch (const error&) {
      l.stream.close();  // the reader tells everybody
    }
  }
};

client::client(options o) : state_{std::make_unique<state>(std::move(o))} {}
client::~client() {
  if (!state_->reader.joinable()) return;
  state_->reader.request_stop();
  shield([&] { state_->reader.join(); });
}

std::vector<reply> client::run(const commands& all) {
  if (all.size() == 0) return {};
  state& s = *state_;
  const auto mine = std::make_shared<record>(all.size());
  for (bool put = false; !put;) {
    const std::shared_ptr<link> l = s.get();
    {
      const std::lock_guard guard{s.lock};
      if (l->gone) continue;  // since then
      l->unsent += all.bytes();
      l->waiting.push_back(mine);
      s.counts.commands += all.size();
      put = true;
    }
    s.send(*l);
  }
  mine->done.wait();
  if (mine->failure) std::rethrow_exception(mine->failure);
  return std::move(mine->replies);
}

client_statistics client::statistics() const {
  const std::lock_guard guard{state_->lock};
  return state_->counts;
}

}  // namespace ramie::redis
