// A chat: rooms publish messages to their members. Rooms and people are actors, so there are no locks.
#include <ramie/ramie.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

struct said {
  std::string room;
  std::string who;
  std::string text;
};
struct log_so_far {};

/// A member with a screen.
class person : public ramie::actor<person> {
 public:
  void on(const said& line) { screen_.push_back("[" + line.room + "] " + line.who + ": " + line.text); }
  std::vector<std::string> on(log_so_far) { return screen_; }

 private:
  std::vector<std::string> screen_;
};

struct join {
  std::string who;
  ramie::actor_ref<person> screen;
};
struct leave {
  std::string who;
};
struct say {
  std::string who;
  std::string text;
};
struct members {};

class room : public ramie::actor<room> {
 public:
  explicit room(std::string name) : name_{std::move(name)} {}

  void on(join j) {
    screens_.join(j.screen);
    monitor(j.screen);  // people may leave without a message
    people_[j.who] = j.screen;
    announce(j.who + " is here");
  }
  void on(const leave& l) {
    const auto it = people_.find(l.who);
    if (it == people_.end()) return;
    screens_.leave(it->second);
    people_.erase(it);
    announce(l.who + " has left");
  }
  void on(const say& s) { screens_.publish({name_, s.who, s.text}); }
  void on(const ramie::down& d) {
    std::erase_if(people_, [&](const auto& entry) { return entry.second == d.who; });
  }
  std::size_t on(members) { return people_.size(); }

 private:
  void announce(const std::string& text) { screens_.publish({name_, "*", text}); }

  std::string name_;
  ramie::group<said> screens_;
  std::map<std::string, ramie::actor_ref<person>> people_;
};

void show(const char* who, const ramie::actor_ref<person>& screen) {
  std::printf("-- %s\n", who);
  for (const std::string& line : screen.ask(log_so_far{})) std::printf("%s\n", line.c_str());
}

int main() {
  return ramie::run([] {
    auto ada = ramie::spawn_actor<person>();
    auto bo = ramie::spawn_actor<person>();
    auto cy = ramie::spawn_actor<person>();
    auto looms = ramie::spawn_actor<room>("looms");
    ramie::register_name("looms", looms);

    looms.tell(join{"ada", ada});
    looms.tell(join{"bo", bo});
    looms.tell(say{"ada", "is a treadle loom worth the room?"});
    looms.tell(join{"cy", cy});
    auto found = ramie::whereis<room>("looms");
    found->tell(say{"bo", "only if you weave every day"});
    looms.tell(leave{"bo"});
    std::printf("%zu are here\n",
                looms.ask(members{}));  // a request: handled after all messages sent from here before it
    cy.stop();
    cy.join();
    looms.tell(say{"ada", "thank you"});

    std::printf("%zu is left\n", looms.ask(members{}));
    show("ada", ada);
    show("bo", bo);
  });
}
