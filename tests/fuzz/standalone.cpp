// The targets without a fuzzer: random inputs from a seed, or the named files. For compilers without libFuzzer, and to
// run again what a fuzzer has found.
#include "input.hpp"

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--runs") != 0) {
    for (int i = 1; i < argc; ++i) {
      std::ifstream file{argv[i], std::ios::binary};
      const std::vector<char> bytes{std::istreambuf_iterator<char>{file}, {}};
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
    return 0;
  }
  const long runs = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 1000;
  std::mt19937_64 random{1};
  std::vector<std::uint8_t> bytes;
  for (long i = 0; i < runs; ++i) {
    bytes.resize(random() % 200);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(random() >> 13);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%ld inputs\n", runs);
  return 0;
}
