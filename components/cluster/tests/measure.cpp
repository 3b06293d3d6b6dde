// Measures a remote tell and ask beside bare libnats, in turns: measure_cluster [ROUNDS [TELLS]]. It starts a server
// and a second process of itself. Prints a line for each round, and the medians of the ratios.
#include "test_cluster.hpp"

#include <nats/nats.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace {

using cluster_tests::process;
using clock_type = std::chrono::steady_clock;

struct line {
  std::string text;
};
struct how_many {};
struct echo {
  std::uint64_t value = 0;
};
RAMIE_WIRE(line, "measure.line", (1, text))
RAMIE_WIRE(how_many, "measure.how_many")
RAMIE_WIRE(echo, "measure.echo", (1, value))

class counter : public ramie::actor<counter> {
 public:
  using remote = ramie::messages<line, how_many, echo>;
  void on(const line&) { ++lines_; }
  std::uint64_t on(how_many) { return lines_; }
  std::uint64_t on(echo e) { return e.value; }

 private:
  std::uint64_t lines_ = 0;
};

void on_bare(natsConnection* nc, natsSubscription* /*sub*/, natsMsg* msg, void* closure) {
  auto& count = *static_cast<std::atomic<std::uint64_t>*>(closure);
  if (const char* reply = natsMsg_GetReply(msg); reply != nullptr)
    natsConnection_PublishString(nc, reply, std::to_string(count.load()).c_str());
  else count.fetch_add(1, std::memory_order_relaxed);
  natsMsg_Destroy(msg);
}

/// `at_once`: without libnats' gathering of up to a millisecond, which makes requests slow and publishing fast.
natsConnection* connect(const std::string& url, bool at_once) {
  natsOptions* options = nullptr;
  natsConnection* nc = nullptr;
  if (natsOptions_Create(&options) != NATS_OK || natsOptions_SetURL(options, url.c_str()) != NATS_OK ||
      natsOptions_SetSendAsap(options, at_once) != NATS_OK || natsConnection_Connect(&nc, options) != NATS_OK)
    std::abort();
  natsOptions_Destroy(options);
  return nc;
}

int serve(const std::string& url) {
  return ramie::run([&] {
    std::atomic<std::uint64_t> count{0};
    for (const bool at_once : {false, true}) {
      natsConnection* nc = connect(url, at_once);
      natsSubscription* sub = nullptr;
      natsConnection_Subscribe(&sub, nc, at_once ? "asked" : "bare", &on_bare, &count);
      natsSubscription_SetPendingLimits(sub, -1, -1);
      natsConnection_Flush(nc);
    }
    ramie::cluster c{cluster_tests::options_for(url, "counter")};
    c.knows<counter>();
    c.register_name("counter", ramie::spawn_actor<counter>());
    std::puts("ready");
    std::fflush(stdout);
    ramie::this_fiber::sleep_for(std::chrono::hours{1});
    return 0;
  });
}

double seconds_since(clock_type::time_point t) { return std::chrono::duration<double>(clock_type::now() - t).count(); }

struct quantiles {
  double p50 = 0, p99 = 0;  // us
};
template <class F>
quantiles time_each(int times, F f) {
  std::vector<double> all;
  for (int i = 0; i < times; ++i) {
    const auto begin = clock_type::now();
    f();
    all.push_back(seconds_since(begin) * 1e6);
  }
  std::sort(all.begin(), all.end());
  return {all[all.size() / 2], all[all.size() * 99 / 100]};
}

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

/// Processor time of a process so far, in seconds.
double processor_s(const std::string& pid) {
  std::ifstream file{"/proc/" + pid + "/stat"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  unsigned long user = 0, system = 0;
  std::sscanf(text.c_str() + text.rfind(')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
              &system);
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string{argv[1]} == "serve") return serve(argv[2]);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  const std::uint64_t tells = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 500'000;
  cluster_tests::nats_server server;
  process child{{"/proc/self/exe", "serve", server.url()}, "-"};
  if (child.line() != "ready\n") return 1;
  natsConnection* nc = connect(server.url(), false);
  natsConnection* at_once = connect(server.url(), true);
  std::vector<double> tell_ratios, ask_ratios;
  const std::string payload(61, 'x');  // a line of 64 bytes on the wire
  ramie::run([&] {
    ramie::cluster c{cluster_tests::options_for(server.url(), "teller")};
    c.knows<counter>();
    const auto there = c.whereis<counter>("counter").value();
    std::uint64_t told = 0, published = 0;
    for (int round = 1; round <= rounds; ++round) {
      const auto processor = [&] {
        return processor_s("self") + processor_s(std::to_string(child.id())) + processor_s(std::to_string(server.id()));
      };
      double cpu = processor();
      auto begin = clock_type::now();
      for (std::uint64_t i = 0; i < tells; ++i) there.tell(line{payload});
      told += tells;
      if (there.ask(how_many{}) != told) std::abort();  // none is lost
      const double ours = static_cast<double>(tells) / seconds_since(begin);
      const double our_cpu = (processor() - cpu) / static_cast<double>(tells) * 1e6;

      cpu = processor();
      begin = clock_type::now();
      const std::string message(64, 'x');
      published += tells;
      ramie::blocking([&] {
        for (std::uint64_t i = 0; i < tells; ++i) natsConnection_Publish(nc, "bare", message.data(), 64);
        for (;;) {
          natsMsg* reply = nullptr;
          if (natsConnection_RequestString(&reply, nc, "bare", "", 60'000) != NATS_OK) std::abort();
          const bool all = std::string{natsMsg_GetData(reply)} == std::to_string(published);
          natsMsg_Destroy(reply);
          if (all) break;
        }
      });
      const double theirs = static_cast<double>(tells) / seconds_since(begin);
      const double their_cpu = (processor() - cpu) / static_cast<double>(tells) * 1e6;

      const quantiles ask = time_each(2000, [&] { static_cast<void>(there.ask(echo{1})); });
      const quantiles request = ramie::blocking([&] {
        return time_each(2000, [&] {
          natsMsg* reply = nullptr;
          if (natsConnection_RequestString(&reply, at_once, "asked", "", 60'000) != NATS_OK) std::abort();
          natsMsg_Destroy(reply);
        });
      });
      std::printf(
          "tell: ramie %.2f M/s, %.2f us of processors each; libnats %.2f M/s, %.2f us; %.2f x\n"
          "ask: ramie p50 %.0f us, p99 %.0f; libnats p50 %.0f us, p99 %.0f; %.2f x\n",
          ours / 1e6, our_cpu, theirs / 1e6, their_cpu, ours / theirs, ask.p50, ask.p99, request.p50, request.p99,
          ask.p50 / request.p50);
      std::fflush(stdout);
      tell_ratios.push_back(ours / theirs);
      ask_ratios.push_back(ask.p50 / request.p50);
    }
  });
  natsConnection_Destroy(nc);
  natsConnection_Destroy(at_once);
  std::printf("medians: tell %.2f x libnats' publish, ask %.2f x libnats' request\n", median(tell_ratios),
              median(ask_ratios));
  return 0;
}
