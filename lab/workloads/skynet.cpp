// Experiment 1: a root makes ten lightweight threads, each makes ten more, down to the leaves. A leaf returns its
// number, every other node the sum of its children's.
#include <lab/harness/opaque.hpp>
#include <lab/harness/session.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace ramie::lab {
namespace {

constexpr std::int64_t fan_out = 10;
using every_child = std::make_index_sequence<static_cast<std::size_t>(fan_out)>;

// A node is the leaves [first, first + leaves); child i is the i-th tenth of them.
constexpr std::int64_t child_first(std::int64_t first, std::int64_t leaves, std::size_t i) {
  return first + static_cast<std::int64_t>(i) * (leaves / fan_out);
}

RAMIE_LAB_CALL std::int64_t by_plain(std::int64_t first, std::int64_t leaves) {
  if (leaves == 1) return first;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < fan_out; ++i) sum += opaque(by_plain(child_first(first, leaves, i), leaves / fan_out));
  return sum;
}

RAMIE_LAB_CALL std::int64_t by_fork_join(std::int64_t first, std::int64_t leaves) {
  if (leaves == 1) return first;
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    auto [a, b, c, d, e, f, g, h, i, j] =
        ramie::fork_join([=] { return by_fork_join(child_first(first, leaves, I), leaves / fan_out); }...);
    return a + b + c + d + e + f + g + h + i + j;
  }(every_child{});
}

RAMIE_LAB_CALL std::int64_t by_scope(std::int64_t first, std::int64_t leaves) {
  if (leaves == 1) return first;
  std::array<std::int64_t, fan_out> sums;
  ramie::scope children;
  for (std::size_t i = 0; i < fan_out; ++i) {
    children.spawn([&sums, first, leaves, i] { sums[i] = by_scope(child_first(first, leaves, i), leaves / fan_out); });
  }
  children.join();
  std::int64_t sum = 0;
  for (const std::int64_t part : sums) sum += part;
  return sum;
}

RAMIE_LAB_CALL std::int64_t by_spawn(std::int64_t first, std::int64_t leaves) {
  if (leaves == 1) return first;
  auto children = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{ramie::spawn([=] { return by_spawn(child_first(first, leaves, I), leaves / fan_out); })...};
  }(every_child{});
  std::int64_t sum = 0;
  for (auto& child : children) sum += child.join();
  return sum;
}

using sums = ramie::channel<std::int64_t>;

/// The original: a node is a fiber with a channel of its own, to which its children send.
template <std::size_t capacity>
void by_channel_node(sums& parent, std::int64_t first, std::int64_t leaves) {
  if (leaves == 1) {
    static_cast<void>(parent.send(first));
    return;
  }
  sums children{capacity};
  for (std::size_t i = 0; i < fan_out; ++i) {
    ramie::spawn([&children, first, leaves, i] {
      by_channel_node<capacity>(children, child_first(first, leaves, i), leaves / fan_out);
    }).detach();
  }
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < fan_out; ++i) sum += *children.recv();
  static_cast<void>(parent.send(sum));
}

template <std::size_t capacity>
std::int64_t by_channel(std::int64_t first, std::int64_t leaves) {
  sums root{capacity};
  ramie::spawn([&root, first, leaves] { by_channel_node<capacity>(root, first, leaves); }).detach();
  return *root.recv();
}

/// What a node tells its parent.
struct part {
  std::int64_t sum;
};

/// The first message of a node.
struct begin {};

class node : public ramie::actor<node> {
 public:
  node(ramie::recipient<part> parent, std::int64_t first, std::int64_t leaves)
      : parent_{std::move(parent)}, first_{first}, leaves_{leaves} {}
  void on(begin) {
    if (leaves_ == 1) {
      parent_.tell(part{first_});
      stop();
      return;
    }
    for (std::size_t i = 0; i < fan_out; ++i) {
      ramie::spawn_actor<node>(self(), child_first(first_, leaves_, i), leaves_ / fan_out).tell(begin{});
    }
  }
  void on(part p) {
    sum_ += p.sum;
    if (--missing_ > 0) return;
    parent_.tell(part{sum_});
    stop();
  }

 private:
  ramie::recipient<part> parent_;
  std::int64_t first_;
  std::int64_t leaves_;
  std::int64_t sum_ = 0;
  std::int64_t missing_ = fan_out;
};

/// The actor that asks for the whole sum.
class asker : public ramie::actor<asker> {
 public:
  explicit asker(std::int64_t* sum) : sum_{sum} {}
  void on(part p) {
    *sum_ = p.sum;
    stop();
  }

 private:
  std::int64_t* sum_;
};

std::int64_t by_actor(std::int64_t first, std::int64_t leaves) {
  std::int64_t sum = -1;
  auto root = ramie::spawn_actor<asker>(&sum);
  ramie::spawn_actor<node>(root, first, leaves).tell(begin{});
  root.join();
  return sum;
}

constexpr std::int64_t nodes_of(std::int64_t leaves) {
  std::int64_t nodes = 1;
  for (; leaves > 1; leaves /= fan_out) nodes += leaves;
  return nodes;
}

using node_function = std::int64_t (*)(std::int64_t first, std::int64_t leaves);

template <node_function root>
run_result run(session& s) {
  const std::int64_t leaves = s.parameter("leaves");
  std::int64_t sum = 0;
  const double seconds = s.time([&] { sum = root(0, opaque_input(leaves)); });
  return {.seconds = seconds, .units = nodes_of(leaves), .ok = sum == leaves * (leaves - 1) / 2};
}

std::string object_to_leaves(std::int64_t leaves) {
  while (leaves % fan_out == 0) leaves /= fan_out;
  return leaves == 1 ? "" : "must be a power of ten";
}

}  // namespace

workload skynet_workload() {
  return {
      .name = "skynet",
      .summary = "experiment 1: a tree of lightweight threads with ten children each; every node adds up its children",
      .unit = "fiber",
      .parameters = {{.name = "leaves",
                      .help = "leaves of the tree, a power of ten",
                      .standard = 1'000'000,
                      .min = 1,
                      .max = 1'000'000'000,
                      .objection = object_to_leaves}},
      .styles =
          {
              {"plain", "noinline function calls, the yardstick", false, run<by_plain>},
              {"fork_join", "one fork_join of ten children a node", true, run<by_fork_join>},
              {"scope", "ten children spawned into a scope, then its join", true, run<by_scope>},
              {"spawn", "ten fibers spawned, then each joined", true, run<by_spawn>},
              {"channel", "the original: a fiber a node, ten of them report on a channel of their parent's", true,
               run<by_channel<0>>},
              {"buffered", "the same, the channels with room for all ten", true, run<by_channel<fan_out>>},
              {"actor", "an actor a node, which tells its parent", true, run<by_actor>},
          },
  };
}

}  // namespace ramie::lab
