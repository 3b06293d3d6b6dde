// Rooms of a chat, each on whichever node has its shard, with their lines as events on the server's disk: a room whose
// node is killed goes on elsewhere with all lines that it had acknowledged.
//
//   cluster_chat URL serve NODE           a node that has rooms
//   cluster_chat URL say NODE ROOM COUNT  says COUNT lines, and prints each that was taken
//   cluster_chat URL read NODE ROOM       prints what was said
#include <ramie/cluster.hpp>
#include <ramie/ramie.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace std::chrono_literals;

namespace chat {

struct line {
  std::string id, text;  // who says it again, because no answer came, uses the same id
};
struct history {};
struct lines {
  std::vector<line> all;
};
RAMIE_WIRE(line, "chat.line", (1, id), (2, text))
RAMIE_WIRE(history, "chat.history")
RAMIE_WIRE(lines, "chat.lines", (1, all))

ramie::cluster* node = nullptr;

class room : public ramie::actor<room> {
 public:
  using remote = ramie::messages<line, history>;
  explicit room(const ramie::shard_key& k)
      : log_{node->logs<line>("rooms").of(k.key)}, here_{node->group<line>(k.key)} {}

  bool on(const line& l) {
    be_ready();
    if (!known_.contains(l.id)) {
      log_.append(l);  // stored before it is answered; fenced_out, and so this actor's end, if the room is elsewhere
      remember(l);
      here_.publish(l);
    }
    return true;
  }
  lines on(history) {
    be_ready();
    return said_;
  }

 private:
  void be_ready() {
    if (std::exchange(ready_, true)) return;
    if (auto saved = log_.load<lines>())
      for (const line& l : saved->all) remember(l);
    log_.replay([&](const line& l) { remember(l); });
  }
  void remember(const line& l) {
    known_.insert(l.id);
    said_.all.push_back(l);
    if (ready_ && said_.all.size() % 100 == 0) log_.save(said_);
  }

  ramie::event_log<line> log_;
  ramie::cluster_group<line> here_;  // sessions that listen
  bool ready_ = false;
  std::set<std::string> known_;
  lines said_;
};

class session : public ramie::actor<session> {
 public:
  using remote = ramie::messages<line>;
  void on(const line& l) {
    std::printf("heard %s\n", l.text.c_str());
    std::fflush(stdout);
  }
};

constexpr ramie::shard_options options{.count = 16, .lease = 1s};

int serve() {
  const auto rooms = node->shards<room>("rooms", options);
  std::puts("ready");
  std::fflush(stdout);
  ramie::this_fiber::sleep_for(1h);
  return 0;
}

/// Again until there is an answer: the id makes that harmless.
template <class Ask>
auto until_answered(Ask ask) {
  for (;;) {
    try {
      return ask();
    } catch (const ramie::error&) {
      ramie::this_fiber::sleep_for(50ms);
    }
  }
}

int say(const std::string& name, const std::string& where, int count) {
  const auto rooms = node->shards<room>("rooms", options);
  auto group = node->group<line>(where);
  const auto me = ramie::spawn_actor<session>();
  group.join(me);
  for (int i = 0; i < count; ++i) {
    const line l{name + "-" + std::to_string(i), name + " says " + std::to_string(i)};
    until_answered([&] { return rooms.of(where).ask_for(2s, l); });
    std::printf("taken %d\n", i);
    std::fflush(stdout);
  }
  me.stop();
  me.join();
  return 0;
}

int read(const std::string& where) {
  const auto rooms = node->shards<room>("rooms", options);
  for (const line& l : until_answered([&] { return rooms.of(where).ask_for(2s, history{}); }).all)
    std::puts(l.text.c_str());
  std::puts("end");
  return 0;
}

}  // namespace chat

int main(int argc, char** argv) {
  const std::string what = argc > 3 ? argv[2] : "";
  if ((what != "serve" || argc != 4) && (what != "say" || argc != 6) && (what != "read" || argc != 5)) {
    std::puts("cluster_chat URL serve NODE | say NODE ROOM COUNT | read NODE ROOM");
    return 2;
  }
  return ramie::run([&] {
    ramie::cluster c{{.url = argv[1], .name = "chat", .node = argv[3]}};
    c.knows<chat::room>();
    c.knows<chat::session>();
    chat::node = &c;
    if (what == "serve") return chat::serve();
    if (what == "say") return chat::say(argv[3], argv[4], std::atoi(argv[5]));
    return chat::read(argv[4]);
  });
}
