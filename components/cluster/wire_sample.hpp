// For tests: a struct with a member of each kind, random ones, and the same as wire.proto's.
#pragma once

#include <ramie/cluster/wire.hpp>

#if __has_include(<wire.pb.h>)  // made by protoc, for the tests alone
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <wire.pb.h>
#define RAMIE_HAS_WIRE_PROTO 1
#endif

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace wire_samples {

struct inner;
struct inner_of_inner {
  std::vector<inner> more;
};
struct inner {
  std::int64_t number = 0;
  std::string text;
  inner_of_inner deeper;
};
RAMIE_WIRE(inner_of_inner, "inner_of_inner", (1, more))
RAMIE_WIRE(inner, "inner", (1, number), (2, text), (3, deeper))

struct sample {
  bool flag = false;
  std::int64_t big = 0;
  std::uint64_t unsigned_big = 0;
  std::int32_t small = 0;
  std::uint32_t unsigned_small = 0;
  float single = 0;
  double twice = 0;
  std::string text;
  inner one;
  std::vector<std::int64_t> numbers;
  std::vector<std::string> texts;
  std::vector<inner> many;
  std::optional<std::int64_t> perhaps;
  std::map<std::string, std::int64_t> counts;
  std::vector<double> points;
  std::chrono::milliseconds duration{0};
};
RAMIE_WIRE(sample, "sample", (1, flag), (2, big), (3, unsigned_big), (4, small), (5, unsigned_small), (6, single),
           (7, twice), (8, text), (9, one), (10, numbers), (11, texts), (12, many), (13, perhaps), (14, counts),
           (15, points), (100000, duration))

#ifdef RAMIE_HAS_WIRE_PROTO
inline void to_proto(const inner& from, wire_test::inner& to) {
  to.set_number(from.number);
  to.set_text(from.text);
  to.mutable_deeper();
  for (const inner& i : from.deeper.more) to_proto(i, *to.mutable_deeper()->add_more());
}

inline wire_test::sample to_proto(const sample& from) {
  wire_test::sample to;
  to.set_flag(from.flag);
  to.set_big(from.big);
  to.set_unsigned_big(from.unsigned_big);
  to.set_small(from.small);
  to.set_unsigned_small(from.unsigned_small);
  to.set_single(from.single);
  to.set_twice(from.twice);
  to.set_text(from.text);
  to_proto(from.one, *to.mutable_one());
  for (const auto v : from.numbers) to.add_numbers(v);
  for (const auto& v : from.texts) to.add_texts(v);
  for (const auto& v : from.many) to_proto(v, *to.add_many());
  if (from.perhaps) to.set_perhaps(*from.perhaps);
  for (const auto& [key, value] : from.counts) (*to.mutable_counts())[key] = value;
  for (const auto v : from.points) to.add_points(v);
  to.set_duration_ms(from.duration.count());
  return to;
}

#endif

inline inner random_inner(std::mt19937_64& random, int depth) {
  inner made{static_cast<std::int64_t>(random()), std::string(random() % 200, static_cast<char>(random())), {}};
  if (depth > 0)
    for (auto n = random() % 3; n > 0; --n) made.deeper.more.push_back(random_inner(random, depth - 1));
  return made;
}

/// Numbers of all sizes, and those at the ends of their ranges.
template <class T>
T random_number(std::mt19937_64& random) {
  switch (random() % 5) {
    case 0: return 0;
    case 1: return std::numeric_limits<T>::max();
    case 2: return std::numeric_limits<T>::min();
    default: return static_cast<T>(static_cast<T>(random()) >> random() % (8 * sizeof(T)));
  }
}

inline sample random_sample(std::mt19937_64& random) {
  sample made;
  made.flag = random() % 2 == 0;
  made.big = random_number<std::int64_t>(random);
  made.unsigned_big = random_number<std::uint64_t>(random);
  made.small = random_number<std::int32_t>(random);
  made.unsigned_small = random_number<std::uint32_t>(random);
  made.single = static_cast<float>(random()) / 3;
  made.twice = -static_cast<double>(random()) / 7;
  made.text = std::string(random() % 300, static_cast<char>(random()));
  made.one = random_inner(random, 3);
  for (auto n = random() % 40; n > 0; --n) made.numbers.push_back(random_number<std::int64_t>(random));
  for (auto n = random() % 4; n > 0; --n) made.texts.emplace_back(random() % 140, 'x');
  for (auto n = random() % 4; n > 0; --n) made.many.push_back(random_inner(random, 1));
  if (random() % 2 == 0) made.perhaps = random_number<std::int64_t>(random);
  for (auto n = random() % 4; n > 0; --n)
    made.counts[std::to_string(random() % 100)] = random_number<std::int64_t>(random);
  for (auto n = random() % 20; n > 0; --n) made.points.push_back(static_cast<double>(random()));
  made.duration = std::chrono::milliseconds{random_number<std::int64_t>(random)};
  return made;
}

#ifdef RAMIE_HAS_WIRE_PROTO
/// As protobuf sees it: the same bytes, for messages that are equal.
inline std::string canonical(const wire_test::sample& of) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream{&bytes};
    google::protobuf::io::CodedOutputStream coded{&stream};
    coded.SetSerializationDeterministic(true);
    of.SerializeToCodedStream(&coded);
  }
  return bytes;
}
#endif

}  // namespace wire_samples
