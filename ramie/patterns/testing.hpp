// For the tests of this floor.
#pragma once

#include <ramie/actor/testing.hpp>

#include <cstddef>
#include <string>

namespace ramie::pattern_tests {

struct news {
  std::string text;
};
struct count {};

class reader : public actor<reader> {
 public:
  void on(const news&) { ++count_; }
  int on(count) { return count_; }

 private:
  int count_ = 0;
};

/// Counts letters.
class other_reader : public actor<other_reader> {
 public:
  void on(news n) { length_ += n.text.size(); }
  std::size_t on(count) { return length_; }

 private:
  std::size_t length_ = 0;
};

}  // namespace ramie::pattern_tests
