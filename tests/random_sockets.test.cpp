// Programs drawn by lot whose fibers read and write sockets and pipes: plainly, with deadlines, cancelled, in a select,
// by helper threads, from two runtimes; streams are half-closed, closed under those that use them, and their numbers
// reused at once. What must hold of each: it ends; what is read is what was written, in order, from the first byte on;
// all of it where nothing was closed or stopped early; a call fails only with what such an end explains; and no
// descriptor is left. A failure names its seed; the same seed draws the same program, though not the same schedule.
#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <dirent.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

std::byte byte_of(std::uint64_t key, std::uint64_t place) noexcept {
  return static_cast<std::byte>(((key ^ place) * 0x9e3779b97f4a7c15u) >> 56);
}

/// How a call is made.
enum class manner { plainly, with_deadline, in_a_select, cancelled, when_ready, by_a_helper, count };

struct step {
  manner how;
  std::size_t size;  // bytes
  int patience;      // us, or yields
};

/// One direction of one connection, drawn before anything runs.
struct direction_plan {
  enum class end { half_closed, closed, left_open };
  std::vector<step> writes, reads;
  end how;
  bool reader_elsewhere, writer_elsewhere;  // in the second runtime
  std::uint64_t key;
};

struct connection_plan {
  enum class kind { tcp, local, pipe };
  kind what;
  std::vector<direction_plan> ways;  // two; a pipe has one
  int closed_after;                  // yields, then one end is closed under everybody. -1: never
  bool closes_second;
};

struct plan {
  enum class end { all_done, cancelled, deadline };
  end how;
  int ends_after;  // us
  bool two_runtimes;
  std::vector<connection_plan> connections;
};

plan draw(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
  const auto steps = [&] {
    std::vector<step> all;
    for (int i = 1 + below(12); i > 0; --i) {
      const int most = below(4) == 0 ? 60'000 : below(2) == 0 ? 2000 : 20;  // above and below what buffers hold
      all.push_back({static_cast<manner>(below(static_cast<int>(manner::count))),
                     static_cast<std::size_t>(1 + below(most)), below(6) == 0 ? 0 : below(200)});
    }
    return all;
  };
  plan p{};
  p.how = static_cast<plan::end>(std::max(0, below(6) - 3));  // mostly all_done
  p.ends_after = below(3000);
  p.two_runtimes = below(3) == 0;
  for (int i = 1 + below(5); i > 0; --i) {
    connection_plan c{};
    c.what = static_cast<connection_plan::kind>(below(3));
    c.closed_after = below(4) == 0 ? below(60) : -1;
    c.closes_second = below(2) == 0;
    for (int w = c.what == connection_plan::kind::pipe ? 1 : 2; w > 0; --w)
      c.ways.push_back({steps(), steps(), static_cast<direction_plan::end>(below(3)), p.two_runtimes && below(2) == 0,
                        p.two_runtimes && below(2) == 0, random()});
    p.connections.push_back(std::move(c));
  }
  return p;
}

/// Both ends.
struct connection {
  tcp_stream t1, t2;
  unix_stream u1, u2;
  pipe_reader r;
  pipe_writer w;
  std::atomic<bool> cut{false};  // an end was closed: what was under way may be lost

  explicit connection(connection_plan::kind k) {
    if (k == connection_plan::kind::local) {
      std::tie(u1, u2) = unix_stream::pair();
    } else if (k == connection_plan::kind::pipe) {
      std::tie(r, w) = make_pipe();
    } else {
      tcp_listener l{{"127.0.0.1", 0}};
      auto client = spawn([at = l.local()] { return tcp_stream::connect(at); });
      t1 = l.accept();
      t2 = client.join();
    }
  }
  /// Calls f(the stream that direction `way` is written to, and the one it is read from).
  template <class F>
  void with(connection_plan::kind k, int way, F f) {
    if (k == connection_plan::kind::tcp) way == 0 ? f(t1, t2) : f(t2, t1);
    else if (k == connection_plan::kind::local) way == 0 ? f(u1, u2) : f(u2, u1);
    else f(w, r);
  }
};

class trial {
 public:
  explicit trial(std::uint64_t seed) : plan_{draw(seed)}, counts_(plan_.connections.size()) {}

  void run(int workers) {
    runtime first{{.workers = workers, .name = "first"}};
    std::optional<runtime> second;
    if (plan_.two_runtimes) second.emplace(runtime_options{.workers = 1, .name = "second"});
    first.run([&] {
      for (const connection_plan& c : plan_.connections) connections_.push_back(std::make_unique<connection>(c.what));
    });
    std::thread other;
    if (second) other = std::thread{[&] { second->run([&] { parts(true); }); }};
    first.run([&] { parts(false); });
    if (other.joinable()) other.join();
    check();
  }

 private:
  struct progress {
    struct way {
      std::uint64_t written = 0, got = 0;
    };
    std::array<way, 2> ways;
  };

  /// All that happens in one of the runtimes.
  void parts(bool elsewhere) {
    const auto work = [&] {
      scope all;
      for (std::size_t i = 0; i < connections_.size(); ++i) {
        const connection_plan& c = plan_.connections[i];
        for (std::size_t w = 0; w < c.ways.size(); ++w) {
          if (c.ways[w].writer_elsewhere == elsewhere) all.spawn([this, i, w] { part(i, w, true); });
          if (c.ways[w].reader_elsewhere == elsewhere) all.spawn([this, i, w] { part(i, w, false); });
        }
        if (c.closed_after >= 0 && !elsewhere) all.spawn([this, i] { close_later(i); });
      }
      if (!elsewhere) all.spawn([this] { reuse_numbers(); });
      if (plan_.how == plan::end::cancelled) {
        this_fiber::sleep_for(std::chrono::microseconds{plan_.ends_after});
        stopped_ = true;
        all.cancel();
      }
      all.join();
    };
    try {
      with_timeout(60s, [&] {  // an end to a test that has failed already
        if (plan_.how != plan::end::deadline) return work();
        try {
          with_timeout(std::chrono::microseconds{plan_.ends_after}, [&] {
            struct noting {
              std::atomic<bool>& stopped;
              ~noting() { stopped = true; }
            } afterwards{stopped_};
            work();
          });
        } catch (const timeout_error&) {
        }
      });
    } catch (const timeout_error&) {
      wrong("it does not end");
    }
    // What is left of the other runtime's parts would wait for these for ever.
    if (stopped_)
      for (std::size_t i = 0; i < connections_.size(); ++i) cut(i, true), cut(i, false);
  }

  void part(std::size_t i, std::size_t w, bool writes) {
    const connection_plan& c = plan_.connections[i];
    connections_[i]->with(c.what, static_cast<int>(w), [&](auto& to, auto& from) {
      try {
        if (writes) write(i, w, to);
        else read(i, w, from);
      } catch (const io_error& e) {
        // After the end of one side, the other one's calls may fail so.
        const bool explained =
            e.code() == io_errc::closed || e.code().value() == EPIPE || e.code().value() == ECONNRESET;
        if (!explained || (!connections_[i]->cut && !stopped_)) wrong(std::string{"unexplained: "} + e.what());
      }
    });
  }

  template <class Stream>
  void write(std::size_t i, std::size_t w, Stream& to) {
    const direction_plan& d = plan_.connections[i].ways[w];
    auto& mine = counts_[i].ways[w];
    std::vector<std::byte> piece;
    for (const step& s : d.writes) {
      piece.resize(s.size);
      for (std::size_t k = 0; k < s.size; ++k) piece[k] = byte_of(d.key, mine.written + k);
      std::size_t done = 0;
      for (int tries = 0; done < s.size; ++tries) {
        std::size_t n = 0;
        const auto call = [&] { to.write_all(std::span<const std::byte>{piece}.subspan(done), &n); };
        try {
          in_the_manner(tries < 3 ? s.how : manner::plainly, s.patience, to, false, call);
        } catch (...) {
          mine.written += n;
          throw;
        }
        mine.written += n;
        done += n;
      }
    }
    if (d.how == direction_plan::end::half_closed) {
      if constexpr (std::is_base_of_v<socket_stream, Stream>) to.shutdown_write();
      else to.close();
    } else if (d.how == direction_plan::end::closed) {
      if (std::is_base_of_v<socket_stream, Stream>) connections_[i]->cut = true;  // of the other direction
      to.close();
    }
  }

  template <class Stream>
  void read(std::size_t i, std::size_t w, Stream& from) {
    const direction_plan& d = plan_.connections[i].ways[w];
    auto& mine = counts_[i].ways[w];
    std::uint64_t total = 0;
    for (const step& s : d.writes) total += s.size;
    std::vector<std::byte> piece;
    for (std::size_t at = 0;; ++at) {
      if (d.how == direction_plan::end::left_open && mine.got == total) return;
      const step& s = d.reads[at % d.reads.size()];
      piece.resize(s.size);
      std::size_t n = 0;
      bool done = false;
      int tries = 0;
      while (!done)
        in_the_manner(tries++ < 3 ? s.how : manner::plainly, s.patience, from, true, [&] {
          n = from.read_some(piece);
          done = true;
        });
      if (n == 0) {
        if (mine.got != total && !connections_[i]->cut && !stopped_)
          wrong("ended after " + std::to_string(mine.got) + " of " + std::to_string(total));
        return;
      }
      for (std::size_t k = 0; k < n; ++k)
        if (piece[k] != byte_of(d.key, mine.got + k)) return wrong("another byte at " + std::to_string(mine.got + k));
      mine.got += n;
    }
  }

  /// May return before `call` has been made, or has ended.
  template <class Stream, class Call>
  void in_the_manner(manner how, int patience, Stream& s, bool reads, Call call) {
    const auto time = std::chrono::microseconds{patience};
    const auto within = [&] {
      try {
        with_timeout(time, call);
      } catch (const timeout_error&) {
      }
    };
    switch (how) {
      case manner::with_deadline: return within();
      case manner::by_a_helper: return blocking(within);
      case manner::in_a_select: {
        bool ready = false;
        const auto note = [&ready] { ready = true; };
        if (reads) select(on_readable(s, note), on_timeout(time, [] {}));
        else select(on_writable(s, note), on_timeout(time, [] {}));
        if (ready) call();
        return;
      }
      case manner::cancelled: {
        scope one;
        one.spawn(call);
        for (int i = 0; i < patience % 5; ++i) this_fiber::yield();
        one.cancel();
        return one.join();
      }
      case manner::when_ready:
        if (reads) s.wait_readable();
        else s.wait_writable();
        return call();
      default: return call();
    }
  }

  void cut(std::size_t i, bool second) {
    connection& c = *connections_[i];
    c.cut = true;
    c.with(plan_.connections[i].what, 0, [&](auto& to, auto& from) {
      if (second) from.close();
      else to.close();
    });
  }

  void close_later(std::size_t i) {
    const connection_plan& c = plan_.connections[i];
    for (int k = 0; k < c.closed_after; ++k) this_fiber::yield();
    cut(i, c.closes_second);
  }

  /// Takes the numbers that are given back: a call that still used one would be seen here.
  void reuse_numbers() {
    for (int i = 0; i < 30; ++i) {
      auto [a, b] = unix_stream::pair();
      const std::string mark = "mark " + std::to_string(i);
      a.write_all(mark);
      this_fiber::yield();
      a.close();
      std::array<std::byte, 50> some;
      std::string got;
      while (const std::size_t n = b.read_some(some)) got.append(reinterpret_cast<const char*>(some.data()), n);
      if (got != mark) wrong("a foreign call used a number again: " + got);
    }
  }

  void wrong(std::string what) {
    const std::lock_guard guard{lock_};
    wrong_.push_back(std::move(what));
  }

  void check() {
    for (const std::string& w : wrong_) ADD_FAILURE() << w;
    for (std::size_t i = 0; i < counts_.size(); ++i)
      for (const auto& way : counts_[i].ways) {
        EXPECT_LE(way.got, way.written);
        if (connections_[i]->cut || stopped_) continue;
        EXPECT_EQ(way.got, way.written) << "connection " << i;
      }
  }

  const plan plan_;
  std::vector<std::unique_ptr<connection>> connections_;
  std::vector<progress> counts_;
  std::atomic<bool> stopped_{false};
  std::mutex lock_;
  std::vector<std::string> wrong_;
};

int open_descriptors() {
  int n = 0;
  DIR* const d = ::opendir("/proc/self/fd");
  while (::readdir(d) != nullptr) ++n;
  ::closedir(d);
  return n;
}

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class random_sockets : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(on, random_sockets, ::testing::Values(1, 2, 8), ::testing::PrintToStringParamName());

TEST_P(random_sockets, carry_what_was_written_and_leave_nothing_behind) {
  const std::uint64_t one = number_from("RAMIE_SEED", 0);
  const std::uint64_t first = one == 0 ? 1 : one;
  const std::uint64_t count = one != 0 ? 1 : number_from("RAMIE_SEEDS", 1) * (RAMIE_TSAN || RAMIE_ASAN ? 20 : 120);
  auto ends = unix_stream::pair();
  std::array<std::byte, 1> some;
  // What plain threads have is there then. Twice, for one of them may find without a wait that it is late.
  for (int i = 0; i < 2; ++i) EXPECT_THROW(with_timeout(1ms, [&] { ends.first.read_some(some); }), timeout_error);
  const int before = open_descriptors();
  for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    trial{seed}.run(GetParam());
    EXPECT_EQ(open_descriptors(), before);
  }
}

}  // namespace
}  // namespace ramie::net
