// For the tests of this floor.
#pragma once

#include <ramie/actor/actor.hpp>
#include <ramie/fiber/testing.hpp>
#include <ramie/runtime/runtime.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

namespace ramie::actor_tests {

using namespace std::chrono_literals;
using fiber_tests::await;
using fiber_tests::few_and_many;
using fiber_tests::scaled;
using fiber_tests::with_workers;

/// Asks until the actor is there again.
template <class A, class M>
auto ask_patiently(const actor_ref<A>& ref, M m) {
  for (;;) {
    try {
      return ref.ask(m);
    } catch (const actor_down&) {
      this_fiber::yield();
    }
  }
}

template <class... Refs>
void stop_and_join(const Refs&... refs) {
  (refs.stop(), ...);
  (static_cast<void>(refs.join()), ...);
}

}  // namespace ramie::actor_tests
