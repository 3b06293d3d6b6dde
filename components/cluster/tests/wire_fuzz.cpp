// The decoder on bytes from anywhere: it may refuse them, by wire_error only. What it takes libprotobuf takes as well,
// and both understand the same.
#include "wire_sample.hpp"

#include <tests/fuzz/input.hpp>

namespace {

void read(const std::string& bytes) {
  wire_samples::sample got;
  try {
    got = ramie::from_wire<wire_samples::sample>(bytes);
  } catch (const ramie::wire_error&) {
    return;
  }
  wire_test::sample theirs;
  if (theirs.ParseFromString(bytes)) {
    fuzz::require(wire_samples::canonical(wire_samples::to_proto(got)) == wire_samples::canonical([&] {
                    // As ours is compared: without fields that nobody knows, and with members that are messages set.
                    wire_samples::sample again = ramie::from_wire<wire_samples::sample>(theirs.SerializeAsString());
                    return wire_samples::to_proto(again);
                  }()),
                  "libprotobuf understands something else");
  }
  const std::string again = ramie::to_wire(got);
  fuzz::require(ramie::to_wire(ramie::from_wire<wire_samples::sample>(again)) == again, "it changes when read again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in{data, size};
  switch (in.pick(2)) {
    case 0: read(in.rest()); break;
    default: {
      // A good one with some bytes changed, left out or doubled.
      std::mt19937_64 random{in.pick(255)};
      std::string bytes = ramie::to_wire(wire_samples::random_sample(random));
      while (!in.empty() && !bytes.empty()) {
        const std::size_t at = (in.pick(255) * 256 + in.pick(255)) % bytes.size();
        switch (in.pick(3)) {
          case 0: bytes.erase(at, 1 + in.pick(3)); break;
          case 1: bytes.insert(at, bytes.substr(at, in.pick(20))); break;
          default: bytes[at] = static_cast<char>(in.pick(255)); break;
        }
      }
      read(bytes);
    }
  }
  return 0;
}
