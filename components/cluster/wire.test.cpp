// The wire format: what it promises to those who change their messages, and what it refuses.
#include <ramie/cluster/wire.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace shop {

enum class colour : std::uint8_t { red, green = 200 };

struct old_order {
  std::string what;
  std::uint32_t count = 1;
};
struct order {
  std::string what;
  std::uint32_t count = 1;
  std::string note = "none";
  std::vector<colour> colours;
};
struct other_order {
  std::string what;
  std::string count;
};
struct nothing {};
struct tree {
  std::vector<tree> branches;
};
struct bits {
  std::vector<std::uint8_t> all;
  std::vector<tree> trees;
};

struct inner {
  std::vector<std::string> words{"inner"};
  int n = 3;
};
/// Everything has an initialiser.
struct initialised {
  std::vector<std::string> tags{"default"};
  std::vector<int> numbers{1, 2};
  std::optional<int> maybe{5};
  std::map<std::string, int> by_name{{"a", 1}};
  std::unordered_map<int, std::string> by_number{{1, "a"}};
  inner one{};
  std::vector<inner> several{inner{}};
  std::optional<inner> some{inner{}};
  std::map<int, inner> named{{1, inner{}}};
  int n = 7;
};

RAMIE_WIRE(inner, "shop.inner", (1, words), (2, n))
RAMIE_WIRE(initialised, "shop.initialised", (1, tags), (2, numbers), (3, maybe), (4, by_name), (5, by_number), (6, one),
           (7, several), (8, some), (9, named), (10, n))
RAMIE_WIRE(old_order, "shop.order", (1, what), (2, count))
RAMIE_WIRE(order, "shop.order", (1, what), (2, count), (3, note), (7, colours))
RAMIE_WIRE(other_order, "shop.order", (1, what), (2, count))
RAMIE_WIRE(nothing, "shop.nothing")
RAMIE_WIRE(tree, "shop.tree", (1, branches))
RAMIE_WIRE(bits, "shop.bits", (1, all), (2, trees))

}  // namespace shop

namespace ramie {
namespace {

std::string bytes_of(std::initializer_list<int> all) {
  std::string s;
  for (const int b : all) s.push_back(static_cast<char>(b));
  return s;
}

template <class T>
std::string refusal(const std::string& bytes) {
  try {
    static_cast<void>(from_wire<T>(bytes));
  } catch (const wire_error& e) {
    return e.what();
  }
  return "";
}

TEST(wire, is_protobuf_byte_by_byte) {
  // As protobuf.dev, "Encoding", has it: field 1 as bytes, field 2 as a varint of 150.
  EXPECT_EQ(to_wire(shop::old_order{"ab", 150}), bytes_of({0x0A, 2, 'a', 'b', 0x10, 0x96, 0x01}));
  EXPECT_EQ(to_wire(shop::nothing{}), "");
  EXPECT_EQ(wire_name<shop::order>(), "shop.order");
  const auto back = from_wire<shop::order>(to_wire(shop::order{"ab", 7, "", {shop::colour::green, shop::colour::red}}));
  EXPECT_EQ(back.what, "ab");
  EXPECT_EQ(back.note, "");
  ASSERT_EQ(back.colours.size(), 2u);
  EXPECT_EQ(back.colours[0], shop::colour::green);
}

TEST(wire, lets_messages_grow) {
  const auto newer = from_wire<shop::order>(to_wire(shop::old_order{"tea", 3}));
  EXPECT_EQ(newer.what, "tea");
  EXPECT_EQ(newer.count, 3u);
  EXPECT_EQ(newer.note, "none");  // as its initialiser says
  const auto older = from_wire<shop::old_order>(to_wire(shop::order{"tea", 4, "hot", {shop::colour::red}}));
  EXPECT_EQ(older.what, "tea");
  EXPECT_EQ(older.count, 4u);
  EXPECT_EQ(from_wire<shop::old_order>("").count, 1u);
}

TEST(wire, containers_arrive_as_they_were_sent_whatever_their_initialisers_say) {
  const shop::inner none{{}, 4}, two{{"x", "y"}, 5};
  const shop::initialised empty{{}, {}, {}, {}, {}, none, {}, {}, {}, 8};
  const auto nothing = from_wire<shop::initialised>(to_wire(empty));
  EXPECT_TRUE(nothing.tags.empty() && nothing.numbers.empty() && !nothing.maybe && nothing.by_name.empty() &&
              nothing.by_number.empty() && nothing.several.empty() && !nothing.some && nothing.named.empty());
  EXPECT_EQ(nothing.n, 8);
  EXPECT_TRUE(nothing.one.words.empty());
  EXPECT_EQ(nothing.one.n, 4);
  const shop::initialised full{{"b"}, {3}, 6, {{"b", 2}}, {{2, "b"}}, two, {none, two}, two, {{2, none}, {3, two}}, 9};
  const auto all = from_wire<shop::initialised>(to_wire(full));
  EXPECT_EQ(all.tags, full.tags);
  EXPECT_EQ(all.numbers, full.numbers);
  EXPECT_EQ(all.maybe, full.maybe);
  EXPECT_EQ(all.by_name, full.by_name);
  EXPECT_EQ(all.by_number, full.by_number);
  EXPECT_EQ(all.one.words, two.words);
  ASSERT_EQ(all.several.size(), 2u);
  EXPECT_TRUE(all.several[0].words.empty());
  EXPECT_EQ(all.several[1].words, two.words);
  EXPECT_EQ(all.some.value().words, two.words);
  ASSERT_EQ(all.named.size(), 2u);
  EXPECT_TRUE(all.named.at(2).words.empty());
  EXPECT_EQ(all.named.at(3).words, two.words);
  // Of an older program, which knows nothing of them: numbers are as initialised, containers are empty.
  const auto old = from_wire<shop::initialised>("");
  EXPECT_EQ(old.n, 7);
  EXPECT_TRUE(old.tags.empty() && !old.maybe && old.one.words.empty());
  EXPECT_EQ(old.one.n, 3);
}

TEST(wire, schemas_tell_who_understands_whom) {
  EXPECT_EQ(wire_schema<shop::old_order>(), "1:t 2:u");
  EXPECT_EQ(wire_schema<shop::order>(), "1:t 2:u 3:t 7:*u");
  EXPECT_TRUE(compatible_schemas(wire_schema<shop::old_order>(), wire_schema<shop::order>()));
  EXPECT_TRUE(compatible_schemas(wire_schema<shop::order>(), wire_schema<shop::old_order>()));
  EXPECT_FALSE(compatible_schemas(wire_schema<shop::other_order>(), wire_schema<shop::order>()));
  EXPECT_TRUE(compatible_schemas("", wire_schema<shop::order>()));
}

TEST(wire, schemas_tell_of_messages_within_messages) {
  EXPECT_EQ((detail::remote_schema<shop::bits, std::string>()), "1:*u 2:*m/shop.tree = t; shop.tree 1:*m/shop.tree");
  EXPECT_EQ((detail::remote_schema<shop::nothing, std::optional<shop::old_order>>()),
            " = m/shop.order; shop.order 1:t 2:u");
  const auto fit = &detail::joined_schemas_fit;
  EXPECT_TRUE(fit("1:t = s", "1:t 2:u = s"));
  EXPECT_FALSE(fit("1:t = s", "1:u = s"));
  EXPECT_FALSE(fit("1:t = s", "1:t = t"));
  EXPECT_TRUE(fit("1:m/a = ; a 1:t", "1:m/a = ; a 1:t 2:u; b 1:t"));
  EXPECT_FALSE(fit("1:m/a = ; a 1:t", "1:m/a = ; a 1:u"));
  EXPECT_FALSE(fit("1:m/a = ; a 1:m/b; b 1:t", "1:m/a = ; a 1:m/b; b 1:s"));
  EXPECT_TRUE(fit(" = ; a ", " = "));
  EXPECT_FALSE(fit("nonsense", "1:t = s"));
}

TEST(wire, refuses_what_is_no_message) {
  EXPECT_NE(refusal<shop::order>(bytes_of({0x0A, 5, 'a'})).find("beyond the end"), std::string::npos);
  EXPECT_NE(refusal<shop::order>(bytes_of({0x10})).find("ends within a number"), std::string::npos);
  EXPECT_NE(refusal<shop::order>(bytes_of({0x00, 0})).find("number is out of range"), std::string::npos);
  EXPECT_NE(refusal<shop::order>(bytes_of({0x0B})).find("wire type is unknown"), std::string::npos);
  EXPECT_NE(refusal<shop::order>(bytes_of({0x08, 1})).find("another wire type"), std::string::npos);
  EXPECT_NE(refusal<shop::order>(bytes_of({0x10, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2})).find("64 bits"),
            std::string::npos);
  EXPECT_NE(refusal<shop::order>(bytes_of({0x10, 255, 255, 255, 255, 255, 1})).find("does not fit"), std::string::npos);
  EXPECT_NE(refusal<shop::order>(bytes_of({0x3A, 1, 0x80})).find("ends within"), std::string::npos);
}

TEST(wire, bounds_depth_size_and_memory) {
  std::string nested;
  for (int i = 0; i < wire_limits::depth + 1; ++i) {
    std::string outer = bytes_of({0x0A});
    detail::wire_writer w{outer};
    w.bytes(nested);
    nested = outer;
  }
  EXPECT_NE(refusal<shop::tree>(nested).find("nested too deeply"), std::string::npos);
  EXPECT_THROW(static_cast<void>(from_wire<shop::old_order>(std::string(wire_limits::message_bytes + 1, '\0'))),
               wire_error);
  EXPECT_THROW(static_cast<void>(to_wire(shop::old_order{std::string(wire_limits::message_bytes, 'x'), 1})),
               wire_error);
  // Two bytes each, and forty of memory or so.
  std::string many;
  for (int i = 0; i < 500'000; ++i) many += bytes_of({0x12, 0});
  const std::string small = many.substr(0, 2000);
  EXPECT_EQ(from_wire<shop::bits>(small).trees.size(), 1000u);
  const std::size_t fit = wire_limits::decoded_bytes / sizeof(shop::tree);
  if (fit < 500'000) {
    EXPECT_NE(refusal<shop::bits>(many).find("too much memory"), std::string::npos);
  }
}

TEST(wire, packed_or_not_is_the_same) {
  const auto packed = from_wire<shop::bits>(bytes_of({0x0A, 3, 1, 2, 3}));
  const auto single = from_wire<shop::bits>(bytes_of({0x08, 1, 0x0A, 1, 2, 0x08, 3}));
  EXPECT_EQ(packed.all, (std::vector<std::uint8_t>{1, 2, 3}));
  EXPECT_EQ(packed.all, single.all);
}

}  // namespace
}  // namespace ramie
