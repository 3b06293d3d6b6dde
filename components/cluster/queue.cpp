// Queues: a stream with WorkQueue retention each, and one consumer, "workers", for all who serve.
//
//  Q1  A job's id is the Nats-Msg-Id under which the server keeps it once within two minutes (`duplicates`). A put whose
//      acknowledgement does not come is sent again under its id, for half that time: then it may not be known whether
//      it is stored, and the caller is told so. It is never sent again later, when the server might take it for a new one.
//  Q2  Jobs are asked for in batches (pull), as many as may be handled; each batch lapses by itself, so that one that the
//      server forgot is asked for again. What comes beyond what was asked for is left alone: it comes again.
//  Q3  A job is acknowledged after its handler has returned, and the acknowledgement is acknowledged by the server; else
//      it is sent again. While a handler runs, "in progress" is said thrice in worker_lost_after.
//  Q4  A job whose handler threw is refused with a delay; at the last attempt it is put on the dead subject, under an
//      id of its own, and acknowledged only then. One that was delivered more often than it may (its workers ended) is
//      put there without being handled.
#include "js_publisher.hpp"

#include <ramie/cluster/queue.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace ramie::detail {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using clock = std::chrono::steady_clock;

constexpr milliseconds pull_lapses{2000};  // a guess: how long a worker may idle after the server came back

std::int64_t ns(milliseconds t) { return std::chrono::duration_cast<nanoseconds>(t).count(); }

void check_id(std::string_view id) {
  const bool fine = id.size() <= 200 && std::all_of(id.begin(), id.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                             c == '_' || c == '=' || c == '.' || c == '/';
                    });
  if (!fine)
    throw invalid_argument{"ramie: cluster: queue: id \"" + std::string{id} +
                           "\": at most 200 letters, digits and -_=./"};
}

/// Of "$JS.ACK.<stream>.<consumer>.<delivered>.<stream sequence>...", or with a domain and an account in front.
struct delivery {
  std::uint64_t attempt = 1, sequence = 0;
  explicit delivery(std::string_view reply) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at <= reply.size();) {
      const std::size_t end = std::min(reply.find('.', at), reply.size());
      words.push_back(reply.substr(at, end - at));
      at = end + 1;
    }
    const std::size_t first = words.size() >= 11 ? 6 : 4;
    if (words.size() < first + 2) return;
    std::from_chars(words[first].data(), words[first].data() + words[first].size(), attempt);
    std::from_chars(words[first + 1].data(), words[first + 1].data() + words[first + 1].size(), sequence);
  }
};

}  // namespace

class queue_core final : public closable, public std::enable_shared_from_this<queue_core> {
 public:
  queue_core(cluster_core& c, std::string name, const queue_options& o)
      : options{o}, name_{std::move(name)}, net_{*c.net}, nc_{static_cast<natsConnection*>(c.net->native())} {
    if (nc_ == nullptr) throw cluster_error{"ramie: cluster: queue " + name_ + ": queues need NATS"};
    const std::string cluster = c.options.name;
    subject_ = "r1." + cluster + ".q." + name_;
    stream_ = "r1_" + cluster + "_q_" + name_;
    dead_subject_ = "r1." + cluster + ".dead." + name_;
    dead_stream_ = "r1_" + cluster + "_dead_" + name_;
    me_ = c.me.name + "." + std::to_string(c.me.incarnation);
    inbox_ = "r1." + cluster + ".i." + me_ + "." + name_ + ".";
    jsCtx* js = nullptr;
    nats_check("JetStream", natsConnection_JetStream(&js, nc_, nullptr));
    js_.reset(js);
    make_stream(stream_, subject_, js_WorkQueuePolicy);
    make_stream(dead_stream_, dead_subject_, js_LimitsPolicy);
    jsConsumerConfig config;
    jsConsumerConfig_Init(&config);
    config.Durable = "workers";
    config.AckPolicy = js_AckExplicit;
    config.AckWait = ns(o.worker_lost_after);
    config.MaxAckPending = 65'536;  // of all workers together: more than 4096 of each of 16
    const natsStatus made =
        blocking([&] { return js_AddConsumer(nullptr, js_.get(), stream_.c_str(), &config, nullptr, nullptr); });
    nats_check("queue " + name_ + ": its consumer (are its options the same on all nodes?)", made);
    publisher_.emplace(nc_, "queue " + name_, inbox_);
  }

  void close() override;

  void store(const std::string& subject, std::string_view bytes, const js_publisher::headers& with) {
    const std::string said = publisher_->store(subject, bytes, with);
    if (js_refused(said))
      throw cluster_error{"ramie: cluster: queue " + name_ + ": the server does not take a job: " + said};
  }
  void put(std::string_view bytes, std::string_view id) {
    check_id(id);
    store(subject_, bytes, {{"Nats-Msg-Id", id.empty() ? me_ + "." + std::to_string(++puts_) : std::string{id}}});
  }
  void bury(std::string_view bytes, const std::string& id, std::uint64_t sequence, const std::string& reason) {
    // A header is a line.
    std::string line = id + " " + reason.substr(0, 1000);
    std::replace_if(line.begin(), line.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
    store(dead_subject_, bytes, {{"Nats-Msg-Id", "dead." + std::to_string(sequence)}, {"Ramie-Reason", line}});
  }

  /// False: the server did not say that it had it.
  bool confirm(const std::string& to, std::string_view what) {
    for (int tries = 0; tries < 3 && !publisher_->is_closed(); ++tries) {
      std::uint64_t number = 0;
      const auto last = at_end([&] { publisher_->forget(number); });
      future<std::optional<std::string>> answer = publisher_->request(to, what, {}, number);
      const bool ready = answer.wait_for(milliseconds{1000}) == std::future_status::ready;
      if (ready && answer.get()) return true;
      if (ready) this_fiber::sleep_for(milliseconds{50});
    }
    return false;
  }
  void say(const std::string& to, const std::string& what) {
    natsConnection_Publish(nc_, to.c_str(), what.data(), static_cast<int>(what.size()));
  }
  void pull(const std::string& reply, std::size_t batch) {
    const std::string to = "$JS.API.CONSUMER.MSG.NEXT." + stream_ + ".workers";
    const std::string what =
        R"({"batch":)" + std::to_string(batch) + R"(,"expires":)" + std::to_string(ns(pull_lapses)) + "}";
    natsConnection_PublishRequest(nc_, to.c_str(), reply.c_str(), what.data(), static_cast<int>(what.size()));
  }

  /// Of the consumer, not of the stream: after a kill the server may keep a job that it knows to be acknowledged.
  std::uint64_t size() {
    // The consumer hears of a job an instant after the stream has it. The stream is asked first: what comes later is
    // not counted twice.
    jsStreamInfo* all = nullptr;
    nats_check("queue " + name_,
               blocking([&] { return js_GetStreamInfo(&all, js_.get(), stream_.c_str(), nullptr, nullptr); }));
    const owned<jsStreamInfo, jsStreamInfo_Destroy> stream{all};
    jsConsumerInfo* raw = nullptr;
    nats_check("queue " + name_, blocking([&] {
                 return js_GetConsumerInfo(&raw, js_.get(), stream_.c_str(), "workers", nullptr, nullptr);
               }));
    const owned<jsConsumerInfo, jsConsumerInfo_Destroy> info{raw};
    const std::uint64_t unheard = all->State.LastSeq - std::min(all->State.LastSeq, raw->Delivered.Stream);
    return static_cast<std::uint64_t>(raw->NumAckPending) +
           std::max(raw->NumPending, std::min(all->State.Msgs, unheard));
  }
  std::vector<dead_bytes> dead(std::size_t most) {
    jsStreamInfo* raw = nullptr;
    nats_check("queue " + name_,
               blocking([&] { return js_GetStreamInfo(&raw, js_.get(), dead_stream_.c_str(), nullptr, nullptr); }));
    const owned<jsStreamInfo, jsStreamInfo_Destroy> info{raw};
    std::vector<dead_bytes> all;
    for (std::uint64_t at = raw->State.FirstSeq; at != 0 && at <= raw->State.LastSeq && all.size() < most; ++at) {
      natsMsg* m = nullptr;
      const natsStatus status =
          blocking([&] { return js_GetMsg(&m, js_.get(), dead_stream_.c_str(), at, nullptr, nullptr); });
      const owned<natsMsg, natsMsg_Destroy> msg{m};
      if (status == NATS_NOT_FOUND) continue;
      nats_check("queue " + name_, status);
      const std::string why = header_of(m, "Ramie-Reason");
      const std::size_t space = std::min(why.find(' '), why.size());
      all.push_back({data_of(m), why.substr(0, space), space == why.size() ? "" : why.substr(space + 1)});
    }
    return all;
  }
  bool begin_once(std::string_view id) {
    check_id(id);
    const std::string key = name_ + "." + std::string{id};
    const std::string mine = me_ + "." + std::to_string(++onces_);
    const auto until = clock::now() + js_duplicates / 2;
    for (;;) try {
        if (net_.create("once", key, mine) != 0) return true;
        // Perhaps by this call, and the answer was lost: then nobody else would ever do it.
        if (const auto found = net_.get("once", key)) return found->value == mine;
      } catch (const cluster_error&) {
        if (publisher_->is_closed() || clock::now() > until) throw;
        this_fiber::sleep_for(milliseconds{20});
      }
  }
  void undo_once(std::string_view id) noexcept {
    const auto until = clock::now() + js_duplicates / 2;
    while (!publisher_->is_closed() && clock::now() < until) {
      try {
        shield([&] { net_.remove("once", name_ + "." + std::string{id}); });
        return;
      } catch (const cluster_error&) {
        shield([] { this_fiber::sleep_for(milliseconds{20}); });
      } catch (...) {
        break;
      }
    }
    // It stays as begun.
  }

  std::shared_ptr<queue_server> serve(job_handler handler, std::function<bool()> goes_on, const serve_options& o);
  [[nodiscard]] const std::string& inbox() const noexcept { return inbox_; }
  [[nodiscard]] natsConnection* connection() const noexcept { return nc_; }

  const queue_options options;

 private:
  void make_stream(const std::string& stream, const std::string& subject, jsRetentionPolicy retention) {
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    config.Name = stream.c_str();
    const char* subjects[] = {subject.c_str()};
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.Retention = retention;
    config.Storage = js_FileStorage;
    config.Duplicates = ns(js_duplicates);
    const natsStatus made = blocking([&] { return js_AddStream(nullptr, js_.get(), &config, nullptr, nullptr); });
    nats_check("stream " + stream, made);
  }

  std::string name_, subject_, stream_, dead_subject_, dead_stream_, me_, inbox_;
  carrier& net_;
  natsConnection* nc_;
  owned<jsCtx, jsCtx_Destroy> js_;
  std::optional<js_publisher> publisher_;
  std::atomic<std::uint64_t> puts_{0}, onces_{0}, servers_last_{0};
  std::mutex lock_;
  std::vector<std::weak_ptr<queue_server>> servers_;
};

/// Those who serve a queue here: one fiber asks for jobs, each job is handled by a fiber of its own.
class queue_server final : public std::enable_shared_from_this<queue_server> {
 public:
  queue_server(std::shared_ptr<queue_core> of, job_handler handler, std::function<bool()> goes_on, std::size_t most,
               std::string inbox)
      : of_{std::move(of)},
        handler_{std::move(handler)},
        goes_on_{std::move(goes_on)},
        most_{most},
        inbox_{std::move(inbox)},
        box_{std::make_shared<incoming>(most)} {}

  void start() {
    sub_.reset(subscribe(of_->connection(), inbox_, &incoming::came, box_));
    spawn([me = shared_from_this(), last = at_end([me = shared_from_this()] { me->over_.set(); })] {
      const auto leave = [&] { shield([&] { me->leave(); }); };
      try {
        me->take_jobs();
      } catch (...) {
        leave();
        throw;
      }
      leave();
    }).detach();
  }
  void stop() {
    stopping_ = true;
    shield([&] { over_.wait(); });
  }
  [[nodiscard]] bool serves() const noexcept { return !stopping_; }

 private:
  struct job {
    std::string bytes, reply, id;
  };
  struct incoming {
    explicit incoming(std::size_t most) : jobs(2 * most) {}
    channel<job> jobs;
    std::atomic<std::uint64_t> lapsed{0};

    static void came(natsConnection* /*nc*/, natsSubscription* /*sub*/, natsMsg* raw, void* closure) {
      const owned<natsMsg, natsMsg_Destroy> msg{raw};
      incoming& me = **static_cast<std::shared_ptr<incoming>*>(closure);
      if (natsMsg_GetReply(raw) == nullptr) {  // a word of the server: the batch is over
        ++me.lapsed;
        return;
      }
      // Where there is no room it comes again, after worker_lost_after.
      static_cast<void>(me.jobs.try_send(job{data_of(raw), natsMsg_GetReply(raw), header_of(raw, "Nats-Msg-Id")}));
    }
  };
  struct batch {
    std::size_t left;
    clock::time_point until;
  };

  void take_jobs() {
    const milliseconds alive_every = of_->options.worker_lost_after / 3;
    clock::time_point say_alive = clock::now() + alive_every;
    while (!stopping_) {
      if (!goes_on_()) {
        stopping_ = true;
        break;
      }
      ask_for_more();
      std::optional<job> got;
      box_->jobs.recv_for(got, milliseconds{100});
      if (got && !got->reply.empty()) begin(std::move(*got));
      if (clock::now() >= say_alive) {
        say_alive = clock::now() + alive_every;
        const std::lock_guard guard{lock_};
        for (const std::string& reply : running_) of_->say(reply, "+WPI");
      }
    }
  }

  void leave() {
    stopping_ = true;
    // What came and was not begun is for others.
    sub_.reset();
    while (auto left = box_->jobs.try_recv())
      if (!left->reply.empty()) of_->say(left->reply, "-NAK");
    for (;;) {
      {
        const std::lock_guard guard{lock_};
        for (const std::string& reply : running_) of_->say(reply, "+WPI");
        if (running_.empty()) break;
      }
      this_fiber::sleep_for(milliseconds{5});
    }
  }

  void ask_for_more() {
    const clock::time_point now = clock::now();
    for (std::uint64_t n = box_->lapsed.exchange(0); n != 0 && !batches_.empty(); --n) batches_.pop_front();
    std::erase_if(batches_, [&](const batch& b) { return b.until < now || b.left == 0; });
    std::size_t taken = box_->jobs.size();
    for (const batch& b : batches_) taken += b.left;
    {
      const std::lock_guard guard{lock_};
      taken += running_.size();
    }
    if (taken >= most_ || (most_ - taken < most_ / 2 && !batches_.empty())) return;
    of_->pull(inbox_, most_ - taken);
    batches_.push_back({most_ - taken, now + pull_lapses + milliseconds{200}});
  }

  void begin(job j) {
    if (!batches_.empty()) {
      const auto open = std::find_if(batches_.begin(), batches_.end(), [](const batch& b) { return b.left != 0; });
      if (open != batches_.end()) --open->left;
    }
    {
      const std::lock_guard guard{lock_};
      running_.push_back(j.reply);
    }
    auto last = at_end([me = shared_from_this(), reply = j.reply] { me->done(reply); });
    spawn([me = shared_from_this(), one = std::move(j), done = std::move(last)] { me->handle(one); }).detach();
  }

  void handle(const job& j) {
    const delivery how{j.reply};
    try {
      std::string reason;
      bool failed = true;
      if (how.attempt > of_->options.attempts) {
        reason = "its workers ended while they handled it";
      } else {
        try {
          handler_(j.bytes);
          failed = false;
        } catch (const cancelled&) {
          of_->say(j.reply, "-NAK");
          throw;
        } catch (const std::exception& e) {
          reason = e.what();
        } catch (...) {
          reason = "an exception that is not a std::exception";
        }
      }
      if (failed && how.attempt < of_->options.attempts) {
        of_->say(j.reply, R"(-NAK {"delay": )" + std::to_string(ns(of_->options.retry_after)) + "}");
      } else {
        if (failed) of_->bury(j.bytes, j.id, how.sequence, reason);
        of_->confirm(j.reply, "+ACK");
      }
    } catch (const error&) {
      // The dead letter was not stored: the job comes again.
    }
  }
  void done(const std::string& which) noexcept {
    {
      const std::lock_guard guard{lock_};
      if (const auto at = std::find(running_.begin(), running_.end(), which); at != running_.end()) running_.erase(at);
    }
    static_cast<void>(
        box_->jobs.try_send(job{}));  // there may be more to ask for; if it is full, take_jobs looks anyway
  }

  std::shared_ptr<queue_core> of_;
  job_handler handler_;
  std::function<bool()> goes_on_;
  std::size_t most_;
  std::string inbox_;
  std::shared_ptr<incoming> box_;
  owned<natsSubscription, natsSubscription_Destroy> sub_;
  std::deque<batch> batches_;
  std::mutex lock_;
  std::vector<std::string> running_;
  std::atomic<bool> stopping_{false};
  event over_;
};

std::shared_ptr<queue_server> queue_core::serve(job_handler handler, std::function<bool()> goes_on,
                                                const serve_options& o) {
  if (o.in_flight < 1 || o.in_flight > 4096)
    throw invalid_argument{"ramie: cluster: queue: serve: in_flight is " + std::to_string(o.in_flight) + "; 1 to 4096"};
  auto fresh = std::make_shared<queue_server>(shared_from_this(), std::move(handler), std::move(goes_on), o.in_flight,
                                              inbox_ + "s" + std::to_string(++servers_last_));
  fresh->start();
  const std::lock_guard guard{lock_};
  std::erase_if(servers_, [](const auto& s) { return s.expired(); });
  servers_.push_back(fresh);
  return fresh;
}

void queue_core::close() {
  std::vector<std::weak_ptr<queue_server>> all;
  {
    const std::lock_guard guard{lock_};
    all.swap(servers_);
  }
  for (const auto& s : all)
    if (const auto server = s.lock()) server->stop();
  publisher_->close();
  js_.reset();
}

void queue_calls::put(queue_core& q, std::string_view bytes, std::string_view id) { q.put(bytes, id); }
std::shared_ptr<queue_server> queue_calls::serve(const std::shared_ptr<queue_core>& q, job_handler handler,
                                                 std::function<bool()> goes_on, const serve_options& o) {
  return q->serve(std::move(handler), std::move(goes_on), o);
}
void queue_calls::stop(queue_server& s) { s.stop(); }
bool queue_calls::serves(queue_server& s) noexcept { return s.serves(); }
std::uint64_t queue_calls::size(queue_core& q) { return q.size(); }
std::vector<dead_bytes> queue_calls::dead(queue_core& q, std::size_t most) { return q.dead(most); }
bool queue_calls::begin_once(queue_core& q, std::string_view id) { return q.begin_once(id); }
void queue_calls::undo_once(queue_core& q, std::string_view id) noexcept { q.undo_once(id); }

std::shared_ptr<queue_core> make_queue(cluster_core& core, const std::string& name, const queue_options& o) {
  if (o.attempts < 1) throw invalid_argument{"ramie: cluster: queue: options.attempts is 0; at least 1"};
  if (o.worker_lost_after < milliseconds{500})
    throw invalid_argument{"ramie: cluster: queue: options.worker_lost_after is " +
                           std::to_string(o.worker_lost_after.count()) + " ms; at least 500"};
  auto made = std::make_shared<queue_core>(core, name, o);
  const std::lock_guard guard{core.lock};
  core.to_close.emplace_back(made);
  return made;
}

}  // namespace ramie::detail
