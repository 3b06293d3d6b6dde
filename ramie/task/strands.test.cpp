#include <ramie/task/strands.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

namespace ramie::detail {
namespace {

/// Strands of one root, each on a stack of its own.
class family {
 public:
  explicit family(std::size_t n) : stacks_(n), links_(n) {
    for (std::size_t i = 0; i < n; ++i) link_strand(links_[i], this, stacks_[i]);
  }
  family(const family&) = delete;
  family& operator=(const family&) = delete;
  ~family() {
    for (strand_link& l : links_) unlink_strand(l);
  }

  void end(std::size_t i) { unlink_strand(links_[i]); }
  [[nodiscard]] const stack* at(std::size_t i) const { return &stacks_[i]; }
  [[nodiscard]] std::size_t size() const { return stacks_.size(); }

  /// How often a visit came to each stack.
  [[nodiscard]] std::map<const stack*, int> visited() const {
    std::map<const stack*, int> seen;
    visit_strands(this, [](void* to, stack& s) { ++(*static_cast<std::map<const stack*, int>*>(to))[&s]; }, &seen);
    return seen;
  }

 private:
  std::vector<stack> stacks_;
  std::vector<strand_link> links_;
};

/// Below, at and above the number that is copied without memory (256), and above twice of it.
TEST(strands, are_all_visited_once_however_many) {
  for (const std::size_t n : {0, 1, 255, 256, 257, 600, 5000}) {
    std::vector<std::unique_ptr<family>> others;  // some are in the same bucket
    for (int i = 0; i < 200; ++i) others.push_back(std::make_unique<family>(2));
    const family own{n};
    const auto seen = own.visited();
    EXPECT_EQ(seen.size(), n);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(seen.count(own.at(i)) == 1 ? seen.at(own.at(i)) : 0, 1) << i;
    for (const auto& other : others) EXPECT_EQ(other->visited().size(), 2u);
  }
}

TEST(strands, that_have_ended_are_not_visited) {
  family own{600};
  for (std::size_t i = 0; i < own.size(); i += 2) own.end(i);
  const auto seen = own.visited();
  EXPECT_EQ(seen.size(), 300u);
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_EQ(seen.contains(own.at(i)), i % 2 == 1) << i;
}

}  // namespace
}  // namespace ramie::detail
