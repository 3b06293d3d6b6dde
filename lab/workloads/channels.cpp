// Fibers that send to fibers: a stream, a select, many at both ends.
#include <lab/harness/session.hpp>
#include <lab/workloads/plain_calls.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ramie::lab {
namespace {

using numbers = ramie::channel<std::int64_t>;

run_result by_plain(session& s) { return run_plain_calls(s, s.parameter("messages")); }

/// 1 + 2 + ... + n
constexpr std::int64_t sum_up_to(std::int64_t n) { return n * (n + 1) / 2; }

std::size_t buffer(session& s) { return static_cast<std::size_t>(s.parameter("capacity")); }
std::size_t no_buffer(session&) { return 0; }

template <std::size_t (*capacity)(session&)>
run_result one_to_one(session& s) {
  const std::int64_t messages = s.parameter("messages");
  std::int64_t sum = 0;
  const double seconds = s.time([&] {
    numbers c{capacity(s)};
    auto producer = ramie::spawn([&c, messages] {
      for (std::int64_t i = 1; i <= messages; ++i) static_cast<void>(c.send(i));
      c.close();
    });
    for (const std::int64_t value : c) sum += value;
    producer.join();
  });
  return {.seconds = seconds, .units = messages, .ok = sum == sum_up_to(messages)};
}

template <std::size_t (*capacity)(session&)>
run_result by_select(session& s) {
  const std::int64_t each = s.parameter("messages") / 4;
  std::int64_t sum = 0;
  const double seconds = s.time([&] {
    numbers a{capacity(s)};
    numbers b{capacity(s)};
    numbers c{capacity(s)};
    numbers d{capacity(s)};
    ramie::scope producers;
    for (numbers* to : {&a, &b, &c, &d}) {
      producers.spawn([to, each] {
        for (std::int64_t i = 1; i <= each; ++i) static_cast<void>(to->send(i));
      });
    }
    const auto add = [&sum](std::optional<std::int64_t> value) { sum += *value; };
    for (std::int64_t i = 0; i < 4 * each; ++i) {
      ramie::select(ramie::on_recv(a, add), ramie::on_recv(b, add), ramie::on_recv(c, add), ramie::on_recv(d, add));
    }
    producers.join();
  });
  return {.seconds = seconds, .units = 4 * each, .ok = sum == 4 * sum_up_to(each)};
}

run_result many_to_many(session& s) {
  const std::int64_t producers = s.parameter("producers");
  const std::int64_t consumers = s.parameter("consumers");
  const std::int64_t each = s.parameter("messages") / producers;
  std::int64_t sum = 0;
  const double seconds = s.time([&] {
    numbers c{buffer(s)};
    std::vector<ramie::join_handle<std::int64_t>> sums;
    sums.reserve(static_cast<std::size_t>(consumers));
    for (std::int64_t i = 0; i < consumers; ++i) {
      sums.push_back(ramie::spawn([&c] {
        std::int64_t part = 0;
        for (const std::int64_t value : c) part += value;
        return part;
      }));
    }
    ramie::scope senders;
    for (std::int64_t i = 0; i < producers; ++i) {
      senders.spawn([&c, each] {
        for (std::int64_t value = 1; value <= each; ++value) static_cast<void>(c.send(value));
      });
    }
    senders.join();
    c.close();
    for (auto& part : sums) sum += part.join();
  });
  return {.seconds = seconds, .units = producers * each, .ok = sum == producers * sum_up_to(each)};
}

parameter messages_parameter(std::int64_t standard) {
  return {.name = "messages", .help = "sent in all", .standard = standard, .min = 100, .max = 1'000'000'000};
}

parameter capacity_parameter(std::int64_t standard) {
  return {.name = "capacity",
          .help = "of each channel that has a buffer",
          .standard = standard,
          .min = 1,
          .max = 1'000'000};
}

/// A function, because the tests ask for workloads before all constants are initialised.
style plain() { return {"plain", "a noinline function call in place of each message, the yardstick", false, by_plain}; }

}  // namespace

workload stream_workload() {
  return {
      .name = "stream",
      .summary = "one producer, one consumer",
      .unit = "message",
      .parameters = {messages_parameter(5'000'000), capacity_parameter(128)},
      .styles = {plain(),
                 {"buffered", "through a channel with a buffer", true, one_to_one<buffer>},
                 {"unbuffered", "through a channel without one", true, one_to_one<no_buffer>}},
      .standard_workers = "1",
  };
}

workload select_workload() {
  return {
      .name = "select",
      .summary = "one consumer selects among four channels, each with a producer",
      .unit = "message",
      .parameters = {messages_parameter(2'000'000), capacity_parameter(128)},
      .styles = {plain(),
                 {"buffered", "channels with buffers", true, by_select<buffer>},
                 {"unbuffered", "channels without", true, by_select<no_buffer>}},
      .standard_workers = "1",
  };
}

workload mpmc_workload() {
  return {
      .name = "mpmc",
      .summary = "several producers and several consumers at one channel",
      .unit = "message",
      .parameters = {messages_parameter(4'000'000),
                     capacity_parameter(1024),
                     {.name = "producers", .help = "fibers that send", .standard = 4, .min = 1, .max = 100},
                     {.name = "consumers", .help = "fibers that receive", .standard = 4, .min = 1, .max = 100'000}},
      .styles = {plain(), {"channel", "one channel with a buffer", true, many_to_many}},
      .standard_workers = "1",
  };
}

}  // namespace ramie::lab
