// Counts words on several nodes. cluster_words URL put FILE CHUNKS puts the file's text as jobs into a queue, some that
// run "cluster_words URL count NAME" count them, and their results go through a second queue under the same ids, so
// that a chunk which was counted twice, because its node was killed, counts once. "put" prints the table when it has
// them all.
#include <ramie/cluster.hpp>
#include <ramie/ramie.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

using namespace std::chrono_literals;

namespace words {

struct chunk {
  std::string id, text;
};
struct counted {
  std::string id;
  std::map<std::string, std::uint64_t> words;
};
RAMIE_WIRE(chunk, "words.chunk", (1, id), (2, text))
RAMIE_WIRE(counted, "words.counted", (1, id), (2, words))

std::map<std::string, std::uint64_t> count(const std::string& text) {
  std::map<std::string, std::uint64_t> table;
  std::string word;
  for (const char c : text + " ") {
    if (c != ' ' && c != '\n' && c != '\t') word += c;
    else if (!word.empty()) ++table[std::exchange(word, {})];
  }
  return table;
}

/// About `parts` pieces, cut between words.
std::vector<chunk> cut(const std::string& text, std::size_t parts) {
  std::vector<chunk> all;
  const std::size_t size = text.size() / parts + 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n\t", std::min(at + size, text.size())), text.size());
    all.push_back({std::to_string(all.size()), text.substr(at, end - at)});
    at = end;
  }
  return all;
}

constexpr ramie::queue_options options{.attempts = 10, .retry_after = 100ms, .worker_lost_after = 2000ms};

int count_for_others(const std::string& url, const std::string& name) {
  ramie::cluster c{{.url = url, .name = "words", .node = name}};
  auto chunks = c.queue<chunk>("chunks", options);
  auto results = c.queue<counted>("results", options);
  const auto worker = chunks.serve(
      [&](const chunk& one) {
        ramie::this_fiber::sleep_for(2ms);  // so that there is something to interrupt
        results.put({one.id, count(one.text)}, one.id);
      },
      {.in_flight = 8});
  std::puts("ready");
  std::fflush(stdout);
  ramie::this_fiber::sleep_for(1h);
  return 0;
}

int put(const std::string& url, const std::string& file, std::size_t parts) {
  std::ifstream in{file};
  const std::string text{std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
  ramie::cluster c{{.url = url, .name = "words", .node = "owner"}};
  auto chunks = c.queue<chunk>("chunks", options);
  auto results = c.queue<counted>("results", options);
  const std::vector<chunk> all = cut(text, parts);
  std::mutex lock;
  std::set<std::string> seen;
  std::map<std::string, std::uint64_t> table;
  ramie::event complete;
  const auto adder = results.serve([&](const counted& one) {
    const std::lock_guard guard{lock};
    if (!seen.insert(one.id).second) return;  // acknowledged here, and the server did not hear of it
    for (const auto& [word, n] : one.words) table[word] += n;
    if (seen.size() == all.size()) complete.set();
  });
  for (const chunk& one : all) chunks.put(one, one.id);
  std::printf("%zu chunks are stored\n", all.size());
  std::fflush(stdout);
  complete.wait();
  const bool right = table == count(text);
  std::printf("%zu words, %s\n", table.size(), right ? "as counted here" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace words

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[2] : "";
  if (argc < 4 || (what != "put" && what != "count")) {
    std::puts("cluster_words URL put FILE [CHUNKS] | cluster_words URL count NAME");
    return 2;
  }
  return ramie::run([&] {
    if (what == "count") return words::count_for_others(argv[1], argv[3]);
    return words::put(argv[1], argv[3], argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1000);
  });
}
