// For tests: a server for all of them, and nodes in this process and in others.
#pragma once

#include "test_cluster.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace cluster_tests {

using namespace std::chrono_literals;

/// Another program of the same build.
inline std::string program(const std::string& name) {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof(path));
  const std::string self{path, static_cast<std::size_t>(n)};
  return self.substr(0, self.rfind('/') + 1) + name;
}

/// One server for all; a cluster of its own for each test would cost buckets.
inline nats_server& server() {
  static nats_server the_server;
  return the_server;
}

/// Two nodes in this process.
struct two_nodes {
  ramie::cluster a{options_for(server().url(), "a")}, b{options_for(server().url(), "b")};
  ramie::actor_ref<keeper> local = ramie::spawn_actor<keeper>();  // at b
  ramie::actor_ref<keeper> there;                                 // the same, as a sees it

  two_nodes() {
    a.knows<keeper>();
    b.knows<keeper>();
    EXPECT_TRUE(b.register_name("keeper", local));
    there = a.whereis<keeper>("keeper").value();
  }
  ~two_nodes() {
    local.stop();
    local.join();
  }
};

/// A node that can be killed, and a cluster here.
struct far_node {
  process node;
  ramie::cluster here;
  ramie::actor_ref<keeper> there;

  explicit far_node(const std::string& name, std::chrono::milliseconds lost_after = 3s)
      : node{{program("test_cluster_node"), server().url(), name, "-", "-", std::to_string(lost_after.count())}, "-"},
        here{options_for(server().url(), "here", lost_after)} {
    here.knows<keeper>();
    EXPECT_EQ(ramie::blocking([&] { return node.line(); }), "ready\n");
    there = here.whereis<keeper>("keeper-" + name).value();
  }
};

template <class F>
ramie::exit_reason reason_thrown(F f) {
  try {
    f();
  } catch (const ramie::actor_down& down) {
    return down.reason();
  }
  return ramie::exit_reason{};
}

}  // namespace cluster_tests
