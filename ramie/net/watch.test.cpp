#include <ramie/net/watch.hpp>

#include <ramie/net/testing.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <ostream>

namespace ramie::net {

static void PrintTo(change_kind k, std::ostream* to) { *to << static_cast<int>(k); }

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using enum change_kind;

void append(const std::string& path, const char* text) { std::ofstream{path, std::ios::app} << text << std::flush; }

using event = std::pair<change_kind, std::string>;
std::vector<event> next_of(watch& w, std::size_t n) {
  std::vector<event> all;
  while (all.size() < n) {
    change c = w.next();
    all.emplace_back(c.kind, std::move(c.path));
  }
  return all;
}
using events = std::vector<event>;

TEST(net_watch, tells_what_happens_in_a_folder) {
  with_workers([] {
    const scratch_folder in;
    watch w;
    w.add(in.path());
    const std::string a = in / "a", b = in / "b", below = in / "below";
    append(a, "text");
    EXPECT_EQ(next_of(w, 3), (events{{created, a}, {modified, a}, {written, a}}));
    ::chmod(a.c_str(), 0600);
    EXPECT_EQ(next_of(w, 1), (events{{attributes, a}}));
    fs::rename(a, b);
    const change from = w.next(), to = w.next();
    EXPECT_EQ(event(from.kind, from.path), event(moved_away, a));
    EXPECT_EQ(event(to.kind, to.path), event(moved_here, b));
    EXPECT_EQ(from.cookie, to.cookie);
    EXPECT_NE(from.cookie, 0u);
    fs::create_directory(below);
    const change folder = w.next();
    EXPECT_TRUE(folder.is_folder);
    EXPECT_EQ(event(folder.kind, folder.path), event(created, below));
    append(in / "below/c", "not watched");
    fs::remove(b);
    EXPECT_EQ(next_of(w, 1), (events{{deleted, b}}));
  });
}

TEST(net_watch, tells_what_happens_to_a_file_until_it_is_gone) {
  with_workers([] {
    const scratch_folder in;
    const std::string a = in / "a";
    append(a, "");
    watch w;
    w.add(a);
    append(a, "text");
    EXPECT_EQ(next_of(w, 2), (events{{modified, a}, {written, a}}));
    fs::remove(a);
    EXPECT_EQ(next_of(w, 3), (events{{attributes, a}, {deleted, a}, {unwatched, a}}));  // first its number of links
    append(a, "another file");
    append(in / "b", "");
    w.add(in / "b");
    append(in / "b", "x");
    EXPECT_EQ(next_of(w, 1), (events{{modified, in / "b"}}));
  });
}

TEST(net_watch, tells_nothing_after_remove) {
  with_workers([] {
    const scratch_folder in;
    const std::string a = in / "a", b = in / "b";
    append(a, "");
    append(b, "");
    watch w;
    w.add(a);
    w.add(b);
    w.remove(a);
    w.remove(in / "c");
    append(a, "x");
    append(b, "x");
    EXPECT_EQ(next_of(w, 3), (events{{unwatched, a}, {modified, b}, {written, b}}));
  });
}

TEST(net_watch, refuses_what_is_not_there) {
  with_workers([] {
    watch w;
    EXPECT_EQ(code_of([&] { w.add("/nowhere/at/all"); }), std::errc::no_such_file_or_directory);
    try {
      w.add("/nowhere/at/all");
    } catch (const io_error& e) {
      EXPECT_NE(std::string{e.what()}.find("watch /nowhere/at/all"), std::string::npos) << e.what();
    }
  });
}

/// More than the buffer holds, and more than a read returns.
TEST(net_watch, gives_all_changes_in_order) {
  with_workers([] {
    const scratch_folder in;
    watch w;
    w.add(in.path());
    constexpr int files = 500;
    auto writer = spawn([&] {
      for (int i = 0; i < files; ++i) {
        append(in / std::to_string(i).c_str(), "");
        if (i % 10 == 0) this_fiber::yield();
      }
    });
    for (int i = 0; i < files; ++i) {
      const std::string at = in / std::to_string(i).c_str();
      ASSERT_EQ(next_of(w, 2), (events{{created, at}, {written, at}}));
    }
    writer.join();
  });
}

TEST(net_watch, ends_by_close) {
  with_workers([] {
    const scratch_folder in;
    for (int i = 0; i < 20; ++i) {
      watch w;
      w.add(in.path());
      auto waiter = spawn([&] { return code_of([&] { static_cast<void>(w.next()); }); });
      if (i % 2 == 0) this_fiber::yield();
      w.close();
      EXPECT_EQ(waiter.join(), io_errc::closed);
      EXPECT_EQ(code_of([&] { w.add(in.path()); }), io_errc::closed);
      EXPECT_EQ(code_of([&] { w.remove(in.path()); }), io_errc::closed);
    }
  });
}

TEST(net_watch, that_is_cancelled_loses_no_change) {
  with_workers([] {
    const scratch_folder in;
    watch w;
    w.add(in.path());
    constexpr int files = 100;
    auto writer = spawn([&] {
      for (int i = 0; i < files; ++i) {
        append(in / std::to_string(i).c_str(), "");
        this_fiber::yield();
      }
    });
    int seen = 0;
    for (int round = 0; seen < 2 * files; ++round) {
      auto one = spawn([&] {
        const change c = w.next();
        EXPECT_EQ(c.path, in / std::to_string(seen / 2).c_str());
        ++seen;
      });
      if (round % 2 == 0) this_fiber::yield();
      if (round % 3 != 0) one.request_stop();
      try {
        one.join();
      } catch (const cancelled&) {
      }
    }
    writer.join();
    EXPECT_THROW(with_timeout(1ms, [&] { static_cast<void>(w.next()); }), timeout_error);
  });
}

TEST(net_watch, tells_that_changes_are_lost) {
  std::size_t most = 0;
  std::ifstream{"/proc/sys/fs/inotify/max_queued_events"} >> most;
  if (most == 0 || most > 50'000) GTEST_SKIP() << "the queue has room for " << most;
  runtime rt{{.workers = 1, .name = "net"}};
  rt.run([&] {
    const scratch_folder in;
    watch w;
    w.add(in.path());
    const std::string a = in / "a", b = in / "b";
    std::ofstream to_a{a}, to_b{b};
    for (std::size_t i = 0; i < most; ++i) (i % 2 == 0 ? to_a : to_b) << 'x' << std::flush;  // equal ones become one
    std::size_t seen = 0;
    change c = w.next();
    for (; c.kind != lost; c = w.next()) ++seen;
    EXPECT_TRUE(c.path.empty());
    EXPECT_GE(seen, most - 1);
    to_a << 'x' << std::flush;
    EXPECT_EQ(next_of(w, 1), (events{{modified, a}}));
  });
}

}  // namespace
}  // namespace ramie::net
