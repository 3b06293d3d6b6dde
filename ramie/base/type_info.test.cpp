#include <ramie/base/type_info.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ramie {
namespace {

struct something {};
template <class T>
struct around {};

TEST(type_infos, are_one_for_each_type) {
  EXPECT_EQ(type_of<int>(), type_of<int>());
  EXPECT_NE(type_of<int>(), type_of<unsigned>());
  EXPECT_NE(type_of<around<int>>(), type_of<around<long>>());
  EXPECT_EQ(&type_of<std::string>(), &type_of<std::string>());
}

TEST(type_infos, see_through_const_and_references) {
  EXPECT_EQ(type_of<int>(), type_of<const int>());
  EXPECT_EQ(type_of<int>(), type_of<int&>());
  EXPECT_EQ(type_of<int>(), type_of<const int&&>());
  EXPECT_NE(type_of<int*>(), type_of<const int*>());
}

TEST(type_infos, know_their_names) {
  EXPECT_EQ(type_of<int>().name(), "int");
  EXPECT_TRUE(type_of<something>().name().ends_with("something")) << type_of<something>().name();
  EXPECT_TRUE(type_of<around<something>>().name().ends_with("something>")) << type_of<around<something>>().name();
  EXPECT_TRUE(type_of<std::vector<int>>().name().starts_with("std::vector<int")) << type_of<std::vector<int>>().name();
}

}  // namespace
}  // namespace ramie
