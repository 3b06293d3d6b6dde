// Bare NATS by its C client: what experiment 8 costs without actors.
#include <common/peer.hpp>
#include <common/processes.hpp>

#include <nats/nats.h>

#include <atomic>
#include <cstring>
#include <memory>

namespace {

using std::int64_t;
using measure = std::function<void(const peer::run_once&)>;

void check(natsStatus s, const char* what) {
  if (s != NATS_OK) throw std::runtime_error{std::string{what} + ": " + natsStatus_GetText(s)};
}

/// `at_once`: each publish is a write, else a thread of the client gathers them for up to a millisecond.
natsConnection* connect(const std::string& url, bool at_once) {
  natsOptions* options = nullptr;
  natsConnection* nc = nullptr;
  check(natsOptions_Create(&options), "options");
  check(natsOptions_SetURL(options, url.c_str()), "url");
  check(natsOptions_SetSendAsap(options, at_once), "SendAsap");
  check(natsConnection_Connect(&nc, options), "connect");
  natsOptions_Destroy(options);
  return nc;
}

std::atomic<int64_t> count{0};

/// Counts; answers what has a reply address with the count, or with what it was sent.
void on_message(natsConnection* nc, natsSubscription*, natsMsg* msg, void*) {
  if (const char* reply = natsMsg_GetReply(msg); reply == nullptr) {
    count.fetch_add(1, std::memory_order_relaxed);
  } else if (natsMsg_GetDataLength(msg) == 0) {
    natsConnection_PublishString(nc, reply, std::to_string(count.load()).c_str());
  } else {
    natsConnection_Publish(nc, reply, natsMsg_GetData(msg), natsMsg_GetDataLength(msg));
  }
  natsMsg_Destroy(msg);
}

int serve(const std::string& url) {
  for (const bool at_once : {false, true}) {
    natsConnection* nc = connect(url, at_once);
    natsSubscription* sub = nullptr;
    check(natsConnection_Subscribe(&sub, nc, at_once ? "asked" : "told", &on_message, nullptr), "subscribe");
    check(natsSubscription_SetPendingLimits(sub, -1, -1), "limits");
    check(natsConnection_Flush(nc), "flush");
  }
  std::puts("ready");
  std::fflush(stdout);
  for (;;) ::pause();
}

/// A group: so many subscriptions of one subject, in a process of its own.
int serve_members(const std::string& url, int members) {
  natsConnection* nc = connect(url, false);
  std::vector<natsSubscription*> all(static_cast<std::size_t>(members));
  for (natsSubscription*& sub : all) {
    check(natsConnection_Subscribe(&sub, nc, "group", &on_message, nullptr), "subscribe");
    check(natsSubscription_SetPendingLimits(sub, -1, -1), "limits");
  }
  natsSubscription* sub = nullptr;
  check(natsConnection_Subscribe(&sub, nc, "told", &on_message, nullptr), "subscribe");
  check(natsConnection_Flush(nc), "flush");
  std::puts("ready");
  std::fflush(stdout);
  for (;;) ::pause();
}

/// The server, the other process, and this one's connections.
struct setting {
  explicit setting(int members = 0)
      : far{members == 0
                ? std::vector<std::string>{peer::this_program(), "serve", server.url()}
                : std::vector<std::string>{peer::this_program(), "members", server.url(), std::to_string(members)}} {
    far.line();
    gathering = connect(server.url(), false);
    at_once = connect(server.url(), true);
  }
  [[nodiscard]] double processors() const {
    return peer::processor_s("self") + peer::processor_s(far.id()) + peer::processor_s(server.id());
  }
  /// What the other process has counted, once it says at least `wanted`, or the last before a minute is over.
  [[nodiscard]] int64_t counted(int64_t wanted) const {
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      natsMsg* reply = nullptr;
      check(natsConnection_Request(&reply, gathering, "told", nullptr, 0, 60'000), "request");
      const int64_t got = std::atoll(
          std::string(natsMsg_GetData(reply), static_cast<std::size_t>(natsMsg_GetDataLength(reply))).c_str());
      natsMsg_Destroy(reply);
      if (got >= wanted || std::chrono::steady_clock::now() - begin > std::chrono::minutes{1}) return got;
    }
  }
  peer::nats_server server;
  peer::child far;
  natsConnection *gathering = nullptr, *at_once = nullptr;
};

peer::outcome outcome_of(double seconds, int64_t units, int64_t lost, double processors) {
  return {
      seconds,
      units,
      lost == 0,
      {{"lost", static_cast<double>(lost)}, {"processor_ns_per_unit", processors / static_cast<double>(units) * 1e9}}};
}

/// `each`: how many arrive of one.
void publish(const peer::options& o, const measure& m, const char* subject, int64_t each) {
  const int64_t messages = o.number("count", 500'000);
  const std::string text(static_cast<std::size_t>(o.number("size", 64)), 'x');
  const setting s{each == 1 ? 0 : static_cast<int>(each)};
  m([&] {
    const int64_t before = s.counted(0), wanted = before + messages * each;
    const double processors = s.processors();
    int64_t got = 0;
    const double seconds = peer::seconds_of([&] {
      for (int64_t i = 0; i < messages; ++i)
        check(natsConnection_Publish(s.gathering, subject, text.data(), static_cast<int>(text.size())), "publish");
      got = s.counted(wanted);
    });
    return outcome_of(seconds, messages * each, wanted - got, s.processors() - processors);
  });
}

void tell(const peer::options& o, const measure& m) { publish(o, m, "told", 1); }
void fan_out(const peer::options& o, const measure& m) { publish(o, m, "group", o.number("members", 16)); }

void ask(const peer::options& o, const measure& m) {
  const int64_t requests = o.number("count", 2000);
  const setting s;
  m([&] {
    std::vector<double> us;
    bool ok = true;
    const double processors = s.processors();
    const double seconds = peer::seconds_of([&] {
      for (int64_t i = 0; i < requests; ++i) {
        const std::string number = std::to_string(i);
        natsMsg* reply = nullptr;
        us.push_back(peer::seconds_of([&] {
                       check(natsConnection_Request(&reply, s.at_once, "asked", number.data(),
                                                    static_cast<int>(number.size()), 60'000),
                             "request");
                     }) *
                     1e6);
        ok = ok && number.compare(0, std::string::npos, natsMsg_GetData(reply),
                                  static_cast<std::size_t>(natsMsg_GetDataLength(reply))) == 0;
        natsMsg_Destroy(reply);
      }
    });
    std::sort(us.begin(), us.end());
    peer::outcome all = outcome_of(seconds, requests, ok ? 0 : 1, s.processors() - processors);
    all.figures["p50_us"] = us[us.size() / 2];
    all.figures["p99_us"] = us[us.size() * 99 / 100];
    return all;
  });
}

/// Asynchronous publishing, 256 under way at most, each with an id.
void queue(const peer::options& o, const measure& m) {
  const int64_t jobs = o.number("count", 20'000);
  const std::string text(static_cast<std::size_t>(o.number("size", 64)), 'x');
  const setting s;
  int streams = 0;
  m([&] {
    const std::string name = "jobs" + std::to_string(++streams);
    jsOptions options;
    jsOptions_Init(&options);
    options.PublishAsync.MaxPending = o.number("fibers", 256);
    jsCtx* js = nullptr;
    check(natsConnection_JetStream(&js, s.at_once, &options), "JetStream");
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    const char* subjects[] = {name.c_str()};
    config.Name = name.c_str();
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.Retention = js_WorkQueuePolicy;
    config.Storage = js_FileStorage;
    check(js_AddStream(nullptr, js, &config, nullptr, nullptr), "stream");
    const double processors = s.processors();
    const double seconds = peer::seconds_of([&] {
      for (int64_t i = 0; i < jobs; ++i) {
        const std::string id = "job-" + std::to_string(i);
        jsPubOptions with;
        jsPubOptions_Init(&with);
        with.MsgId = id.c_str();
        check(js_PublishAsync(js, name.c_str(), text.data(), static_cast<int>(text.size()), &with), "publish");
      }
      jsPubOptions wait;
      jsPubOptions_Init(&wait);
      wait.MaxWait = 60'000;
      check(js_PublishAsyncComplete(js, &wait), "complete");
    });
    const double used = s.processors() - processors;
    jsStreamInfo* info = nullptr;
    check(js_GetStreamInfo(&info, js, name.c_str(), nullptr, nullptr), "info");
    const int64_t stored = static_cast<int64_t>(info->State.Msgs);
    jsStreamInfo_Destroy(info);
    jsCtx_Destroy(js);
    return outcome_of(seconds, jobs, jobs - stored, used);
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "serve") == 0) return serve(argv[2]);
  if (argc == 4 && std::strcmp(argv[1], "members") == 0) return serve_members(argv[2], std::atoi(argv[3]));
  return peer::run("libnats", nats_GetVersion(),
                   {{"across_tell", "publish", "message", tell},
                    {"across_ask", "request", "request", ask},
                    {"across_fan_out", "publish", "message", fan_out},
                    {"across_queue", "publish_async", "job", queue}},
                   argc, argv);
}
