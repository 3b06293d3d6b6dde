// The wire format and libprotobuf read each other.
#include "wire_sample.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace ramie {
namespace {

TEST(wire_and_protobuf, libprotobuf_reads_what_ramie_writes) {
  std::mt19937_64 random{1};
  for (int i = 0; i < 3000; ++i) {
    const auto sent = wire_samples::random_sample(random);
    wire_test::sample got;
    ASSERT_TRUE(got.ParseFromString(to_wire(sent))) << "round " << i;
    ASSERT_EQ(wire_samples::canonical(got), wire_samples::canonical(wire_samples::to_proto(sent))) << "round " << i;
  }
}

TEST(wire_and_protobuf, ramie_reads_what_libprotobuf_writes) {
  std::mt19937_64 random{2};
  for (int i = 0; i < 3000; ++i) {
    const auto sent = wire_samples::to_proto(wire_samples::random_sample(random));
    const auto got = from_wire<wire_samples::sample>(sent.SerializeAsString());
    ASSERT_EQ(wire_samples::canonical(wire_samples::to_proto(got)), wire_samples::canonical(sent)) << "round " << i;
  }
}

// Two messages one behind the other are one, merged: later numbers count, lists are joined.
TEST(wire_and_protobuf, merge_alike) {
  std::mt19937_64 random{3};
  for (int i = 0; i < 500; ++i) {
    const std::string two = to_wire(wire_samples::random_sample(random)) + to_wire(wire_samples::random_sample(random));
    wire_test::sample theirs;
    ASSERT_TRUE(theirs.ParseFromString(two));
    const auto ours = from_wire<wire_samples::sample>(two);
    ASSERT_EQ(wire_samples::canonical(wire_samples::to_proto(ours)), wire_samples::canonical(theirs)) << "round " << i;
  }
}

}  // namespace
}  // namespace ramie
