// The process is waited for by its pidfd, which becomes readable when the process has ended: no SIGCHLD handler, no
// number that another process may have by now. Where the kernel refuses pidfds it is looked for, by its number, now and
// then. It is started by posix_spawn, which copies no address space; the caller stands still until the new program has
// been loaded, so that happens on a thread that lives as long as the process (machine/lasting_thread.hpp).
#include <ramie/net/child.hpp>

#include <ramie/fiber/blocking.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/machine/lasting_thread.hpp>
#include <ramie/poll/system.hpp>
#include <ramie/sync/wait_group.hpp>
#include <ramie/task/io_wait.hpp>
#include <ramie/worker/worker.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <future>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

namespace ramie::net {

namespace {

using namespace detail;

constexpr const char* waiting = ramie::detail::io_reason.child;

/// Above the standard ones: else the child's streams would overwrite each other.
raw_fd above_standard(int fd) {
  raw_fd own{fd};
  if (fd > 2) return own;
  raw_fd copy{::fcntl(fd, F_DUPFD_CLOEXEC, 3)};
  if (copy.get() < 0) system::fail("start a child", -errno);
  return copy;
}

/// Copies above the numbers that the child has them by: else they would overwrite each other.
std::vector<raw_fd> out_of_their_way(const std::vector<int>& descriptors) {
  std::vector<raw_fd> all;
  all.reserve(descriptors.size());
  for (const int fd : descriptors) {
    const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 3 + static_cast<int>(descriptors.size()));
    const system::result code = copy >= 0 ? 0 : -errno;
    if (code != 0) system::fail("start a child: descriptor " + std::to_string(fd), code);
    all.emplace_back(copy);
  }
  return all;
}

/// A pipe: ours, which does not block, and the child's, which does.
std::pair<raw_fd, raw_fd> pipe_to_child(bool child_reads) {
  int both[2];
  if (::pipe2(both, O_CLOEXEC) != 0) system::fail("start a child: pipe", -errno);
  raw_fd second{both[1]};
  raw_fd reading = above_standard(both[0]);
  raw_fd writing = above_standard(second.release());
  raw_fd& ours = child_reads ? writing : reading;
  system::check("start a child: pipe", system::set_nonblocking(ours.get()));
  if (child_reads) return {std::move(writing), std::move(reading)};
  return {std::move(reading), std::move(writing)};
}

/// What posix_spawn is to do in the child. Its functions return errno values.
class instructions {
 public:
  instructions() {
    check(::posix_spawn_file_actions_init(&actions_));
    if (const int code = ::posix_spawnattr_init(&attributes_); code != 0) {
      ::posix_spawn_file_actions_destroy(&actions_);
      check(code);
    }
  }
  instructions(const instructions&) = delete;
  instructions& operator=(const instructions&) = delete;
  ~instructions() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  void become(int fd, int standard) { check(::posix_spawn_file_actions_adddup2(&actions_, fd, standard)); }
  void open_null(int standard) {
    check(::posix_spawn_file_actions_addopen(&actions_, standard, "/dev/null", standard == 0 ? O_RDONLY : O_WRONLY, 0));
  }
  void change_directory(const std::string& to) { check(::posix_spawn_file_actions_addchdir_np(&actions_, to.c_str())); }
  void close_from(int fd) {
#if __GLIBC_PREREQ(2, 34)
    check(::posix_spawn_file_actions_addclosefrom_np(&actions_, fd));
#else
    static_cast<void>(fd);
#endif
  }
  /// `own_group`: and makes a group of its own.
  void reset_signals(bool own_group) {
    sigset_t set;
    ::sigemptyset(&set);
    check(::posix_spawnattr_setsigmask(&attributes_, &set));
    ::sigaddset(&set, SIGPIPE);
    check(::posix_spawnattr_setsigdefault(&attributes_, &set));
    const int group = own_group ? POSIX_SPAWN_SETPGROUP : 0;  // 0: the child's own number
    check(::posix_spawnattr_setflags(&attributes_,
                                     static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group)));
  }
  [[nodiscard]] int start(pid_t& id, char* const* arguments, char* const* environment) const noexcept {
    return ::posix_spawnp(&id, arguments[0], &actions_, &attributes_, arguments, environment);
  }

 private:
  static void check(int code) {
    if (code != 0) system::fail("start a child", -code);
  }
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// Ours, if it is a pipe, in `own`; the child's in `theirs`, to live until it has started.
void connect(instructions& todo, child_io what, int standard, raw_fd& own, raw_fd& theirs) {
  if (what == child_io::to_out) {
    if (standard != 2) throw invalid_argument{"ramie: child: to_out is for standard error (options.err) only"};
    todo.become(1, 2);
  } else if (what == child_io::null) {
    todo.open_null(standard);
  } else if (what == child_io::pipe) {
    std::tie(own, theirs) = pipe_to_child(standard == 0);
    todo.become(theirs.get(), standard);
  }
}

template <class Pipe>
void adopt(Pipe& as, raw_fd& own) {
  if (own.get() < 0) return;
  as = Pipe::adopt(own.get());
  static_cast<void>(own.release());
}

/// For one that has just started. Whatever signals come: it must not stay behind as a zombie.
void kill_and_wait(pid_t id, bool own_group) noexcept {
  ::kill(own_group ? -id : id, SIGKILL);
  while (::waitpid(id, nullptr, 0) < 0 && errno == EINTR) {
  }
}

system::result wait_now(idtype_t what, id_t process, int flags, siginfo_t& how) noexcept {
  how = {};
  return ::waitid(what, process, &how, WEXITED | WNOHANG | flags) == 0 ? 0 : -errno;
}
constexpr auto by_descriptor = static_cast<idtype_t>(3);  // P_PIDFD, of Linux 5.4

}  // namespace

std::string child_status::to_string() const {
  if (signal == 0) return "exited with " + std::to_string(code);
  const char* name = ::sigdescr_np(signal);
  std::string text = "killed by signal " + std::to_string(signal);
  if (name != nullptr) text += " (" + std::string{name} + ")";
  return text;
}

child::child(std::vector<std::string> arguments, const child_options& options, std::source_location where) {
  if (arguments.empty()) throw invalid_argument{"ramie: child: no arguments; the first one is the program"};
  for (const std::string& word : arguments) check_no_zero("child: the argument", word);
  std::vector<std::string> environment_given = options.environment.value_or(std::vector<std::string>{});
  for (const std::string& one : environment_given) check_no_zero("child: the variable", one);
  check_no_zero("child: the directory", options.directory);
  instructions todo;
  raw_fd own[3], theirs[3];
  connect(todo, options.in, 0, own[0], theirs[0]);
  connect(todo, options.out, 1, own[1], theirs[1]);
  connect(todo, options.err, 2, own[2], theirs[2]);
  if (!options.directory.empty()) todo.change_directory(options.directory);
  const std::vector<raw_fd> given = out_of_their_way(options.descriptors);
  for (std::size_t i = 0; i < given.size(); ++i) todo.become(given[i].get(), 3 + static_cast<int>(i));
  todo.close_from(3 + static_cast<int>(given.size()));
  todo.reset_signals(options.own_group);
  std::vector<char*> words = pointers_to(arguments);
  std::vector<char*> variables = pointers_to(environment_given);
  char* const* const environment = options.environment ? variables.data() : environ;
  adopt(in_, own[0]);
  adopt(out_, own[1]);
  adopt(err_, own[2]);

  const auto [code, pidfd] = blocking(
      [&]() -> std::pair<int, int> {
        int failed = 0;
        auto start = [&] { failed = todo.start(id_, words.data(), environment); };
        // A helper thread ends, and with it a child with PR_SET_PDEATHSIG.
        ramie::detail::on_lasting_thread(ramie::detail::duty::starts_children, start);
        if (failed != 0) return {failed, -1};
        const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, id_, 0));
        if (fd >= 0) return {0, fd};
        if (errno == ENOSYS || errno == EPERM) return {0, -1};  // an old kernel, or a filter in front of it
        failed = errno;  // no descriptor left, say: what cannot be waited for must not run
        kill_and_wait(id_, options.own_group);
        return {failed, -1};
      },
      where);
  if (code != 0) {
    id_ = 0;
    system::fail(
        "run \"" + arguments[0] + "\"" + (options.directory.empty() ? "" : " in \"" + options.directory + "\""), -code);
  }
  leads_group_ = options.own_group;
  if (pidfd < 0) return;
  try {
    process_ = handle{pidfd, endings::pass};
  } catch (...) {
    kill_and_wait(id_, options.own_group);
    system::close(pidfd);
    throw;
  }
}

child::child(child&& other) noexcept
    : process_{std::move(other.process_)},
      id_{std::exchange(other.id_, 0)},
      leads_group_{other.leads_group_},
      status_{std::exchange(other.status_, std::nullopt)},
      in_{std::move(other.in_)},
      out_{std::move(other.out_)},
      err_{std::move(other.err_)} {}

child& child::operator=(child&& other) noexcept {
  if (this == &other) return *this;
  end();
  process_ = std::move(other.process_);
  id_ = std::exchange(other.id_, 0);
  leads_group_ = other.leads_group_;
  status_ = std::exchange(other.status_, std::nullopt);
  in_ = std::move(other.in_);
  out_ = std::move(other.out_);
  err_ = std::move(other.err_);
  return *this;
}

child::~child() { end(); }

void child::end() noexcept {
  if (id_ == 0 || status_) return;
  try {
    kill(SIGKILL);
    shield([&] { wait(); });
  } catch (...) {
    // It is somebody else's child by now, or a privileged program.
  }
}

namespace {
/// Held where a number is looked at or used that is its child's only until that has been waited for.
constinit std::mutex numbers;
}  // namespace

/// Has it ended? Then what is left of its group is killed, while the number is its own; its status is known from then
/// on, and its number may be another's.
bool child::reap() {
  std::unique_lock guard{numbers, std::defer_lock};
  if (uses_number()) guard.lock();
  siginfo_t how;
  const auto look = [&](int flags) {
    system::result code = -EINTR;
    while (code == -EINTR)
      code = by_number() ? wait_now(P_PID, static_cast<id_t>(id_), flags, how)
                         : wait_now(by_descriptor, static_cast<id_t>(process_.fd()), flags, how);
    system::check(waiting, code);
    return how.si_pid != 0;
  };
  if (leads_group_) {
    if (!look(WNOWAIT)) return false;
    ::kill(-id_, SIGKILL);
  }
  if (!look(0)) return false;
  if (how.si_code == CLD_EXITED) status_ = child_status{how.si_status, 0};
  else status_ = child_status{0, how.si_status};
  return true;
}

std::optional<child_status> child::try_wait() {
  if (status_) return status_;
  check_started("try_wait");
  std::optional<use> during;
  if (!by_number()) during.emplace(process_.get(), waiting);
  reap();
  return status_;
}

child_status child::terminate(std::chrono::nanoseconds grace, std::source_location where) {
  kill(SIGTERM);
  try {
    return with_timeout(grace, [&] { return wait(where); });
  } catch (const timeout_error&) {
    kill(SIGKILL);
    return wait(where);
  }
}

pid_t child::release() noexcept {
  process_ = {};
  in_.close();
  out_.close();
  err_.close();
  status_.reset();
  return std::exchange(id_, 0);
}

void child::check_started(const char* call) const {
  if (id_ == 0)
    throw usage_error{"ramie: child: " + std::string{call} + "() of a child that was moved from or not started"};
}

child_status child::wait(std::source_location where) {
  if (status_) return *status_;
  check_started("wait");
  if (by_number()) {
    for (std::chrono::milliseconds pause{1}; !reap(); pause = std::min(2 * pause, std::chrono::milliseconds{20}))
      this_fiber::sleep_for(pause, where);
    return *status_;
  }
  const use during{process_.get(), waiting};
  while (!reap()) await_ready(*process_, direction::in, waiting, where);
  return *status_;
}

void child::kill(int signal) {
  if (uses_number()) {
    const std::lock_guard guard{numbers};
    siginfo_t how;
    // Has this process waited for it elsewhere? Then the number may be another's by now.
    if (status_ || wait_now(P_PID, static_cast<id_t>(id_), WNOWAIT, how) != 0) return;
    // The leader may have gone to another group.
    const bool is_in_it = leads_group_ && ::getpgid(id_) == id_;
    if (leads_group_ && !is_in_it) ::kill(-id_, signal);
    if (::kill(is_in_it ? -id_ : id_, signal) != 0 && errno != ESRCH)
      system::fail("kill child " + std::to_string(id_), -errno);
    return;
  }
  if (process_.get() == nullptr) return;
  const use during{process_.get(), "kill a child"};
  if (::syscall(SYS_pidfd_send_signal, during.fd(), signal, nullptr, 0) != 0 && errno != ESRCH)
    system::fail("kill child " + std::to_string(id_), -errno);
}

namespace {

void append(std::string& to, const char* part, std::size_t n, std::size_t most, const char* which) {
  if (n > most - to.size())
    throw io_error{
        "a child's " + std::string{which} + " beyond " + std::to_string(most) + " bytes (child_options::output_most)",
        io_errc::too_long};
  to.append(part, n);
}

void read_all(pipe_reader& from, std::string& to, std::size_t most, const char* which,
              const std::source_location& where) {
  std::array<std::byte, 4096> part;
  try {
    while (const std::size_t n = from.read_some(part, where))
      append(to, reinterpret_cast<const char*>(part.data()), n, most, which);
  } catch (const io_error& e) {
    if (e.code() != io_errc::closed) throw;  // its time was over
  }
}

void write_all(pipe_writer& to, std::string_view input, const std::source_location& where) {
  try {
    to.write_all(std::as_bytes(std::span{input}), nullptr, where);
  } catch (const io_error& e) {
    // It reads only as much as it wants, or its time was over.
    if (e.code() != std::errc::broken_pipe && e.code() != io_errc::closed) throw;
  }
  to.close();
}

/// What serves the pipes of a child: fibers, or, on a plain thread, where the children of a scope run one after the
/// other, threads. If one fails, the process and all pipes end, so that the others end, too.
class companions {
 public:
  explicit companions(child& process) : process_{process} { threads_.reserve(3); }
  companions(const companions&) = delete;
  companions& operator=(const companions&) = delete;
  ~companions() { close_all(); }  // or threads would wait for what nobody ends

  template <class F>
  void spawn(F step) {
    auto serve = [this, step, begun = counted{running_}]() mutable {
      const counted until_its_end{std::move(begun)};
      try {
        step();
      } catch (...) {
        end_process();
        throw;
      }
    };
    if (ramie::detail::worker::current() != nullptr) return fibers_.spawn(std::move(serve));
    try {
      threads_.push_back(std::async(std::launch::async, std::move(serve)));
    } catch (const std::system_error& e) {
      throw resource_error{"ramie: run_child: cannot start a thread: " + e.code().message(), e.code().value()};
    }
  }
  /// Waits until all have ended, for so long at most.
  bool wait_for(std::chrono::nanoseconds limit, const std::source_location& where) {
    if (limit != std::chrono::nanoseconds::max()) return running_.wait_for(limit, where);
    running_.wait(where);
    return true;
  }
  void close_all() noexcept {
    process_.in().close();
    process_.out().close();
    process_.err().close();
  }
  /// Throws what they throw.
  void join() {
    for (auto& one : threads_) one.get();
    fibers_.join();
  }

 private:
  /// One that has not ended, or is not begun: a scope drops those if another one fails.
  class counted {
   public:
    explicit counted(wait_group& in) : in_{&in} { in.add(); }
    counted(counted&& other) noexcept : in_{std::exchange(other.in_, nullptr)} {}
    counted& operator=(counted&&) = delete;
    ~counted() {
      if (in_ != nullptr) in_->done();
    }

   private:
    wait_group* in_;
  };

  void end_process() noexcept {
    close_all();
    try {
      process_.kill(SIGKILL);
    } catch (const io_error&) {
      // It is a privileged program: it may end by itself, since nobody has its pipes.
    }
  }

  child& process_;
  wait_group running_;
  scope fibers_;
  std::vector<std::future<void>> threads_;
};

/// What is in the pipe, of which `kept` is a duplicate, after its reader has ended: not what comes meanwhile.
void read_rest(const raw_fd& kept, std::string& to, std::size_t most, const char* which) {
  int left = 0;
  if (kept.get() < 0 || ::ioctl(kept.get(), FIONREAD, &left) != 0) return;
  std::array<char, 4096> part;
  while (left > 0) {
    const system::result n =
        system::read(kept.get(), part.data(), std::min(part.size(), static_cast<std::size_t>(left)));
    if (n == -EINTR) continue;
    if (n <= 0) return;
    append(to, part.data(), static_cast<std::size_t>(n), most, which);
    left -= static_cast<int>(n);
  }
}

raw_fd copy_of(const pipe_reader& from) {
  return raw_fd{from.native_handle() < 0 ? -1 : ::fcntl(from.native_handle(), F_DUPFD_CLOEXEC, 0)};
}

}  // namespace

child_output run_child(std::vector<std::string> arguments, std::string_view input, child_options options,
                       std::source_location where) {
  for (child_io* io : {&options.in, &options.out, &options.err})
    if (*io == child_io::inherit) *io = child_io::pipe;
  child_output all;
  child process{std::move(arguments), options, where};
  companions streams{process};
  if (options.in == child_io::pipe) streams.spawn([&] { write_all(process.in(), input, where); });
  if (options.out == child_io::pipe)
    streams.spawn([&] { read_all(process.out(), all.out, options.output_most, "output", where); });
  if (options.err == child_io::pipe)
    streams.spawn([&] { read_all(process.err(), all.err, options.output_most, "errors", where); });
  all.status = process.wait(where);
  if (streams.wait_for(options.output_wait, where)) {
    streams.join();
    return all;
  }
  const raw_fd out = copy_of(process.out()), err = copy_of(process.err());
  streams.close_all();
  streams.join();
  read_rest(out, all.out, options.output_most, "output");
  read_rest(err, all.err, options.output_most, "errors");
  return all;
}

}  // namespace ramie::net
