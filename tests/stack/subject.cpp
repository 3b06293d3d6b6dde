// The program that tools/stack analyses. Prints the stack that it really used: one line a fiber, "name bytes".
#include <ramie/ramie.hpp>

#include <cstdio>

namespace {

[[gnu::noinline]] int leaf(int n) {
  volatile char memory[3000];
  for (int i = 0; i < 3000; ++i) memory[i] = static_cast<char>(n);
  return memory[n];
}

[[gnu::noinline]] int middle(int n) {
  volatile char memory[24'000];
  for (int i = 0; i < 24'000; ++i) memory[i] = static_cast<char>(n);
  return leaf(n) + memory[n];
}

[[gnu::noinline]] int down(int n) {
  volatile char memory[1000];
  for (int i = 0; i < 1000; ++i) memory[i] = static_cast<char>(n);
  return n == 0 ? leaf(0) : down(n - 1) + memory[n];
}

int (*volatile pointer)(int) = &middle;

struct by_call {
  void operator()() const { static_cast<void>(middle(1)); }
};
struct by_recursion {
  void operator()() const { static_cast<void>(down(19)); }
};
struct by_pointer {
  void operator()() const { static_cast<void>(pointer(1)); }
};

struct start {};
class by_message : public ramie::actor<by_message> {
 public:
  void on(start) { static_cast<void>(middle(1)); }
};
struct by_mailbox {
  void operator()(ramie::mailbox<start>& box) const {
    static_cast<void>(box.receive());
    static_cast<void>(middle(1));
  }
};

template <class Ref>
void tell(Ref a) {
  a.tell(start{});
  a.stop();
  a.join();
}

template <class F>
void run(const char* name, F f) {
  ramie::spawn(ramie::fiber_options{.name = name}, f).join();
}

}  // namespace

int main() {
  ramie::runtime rt{{.workers = 1, .spare_workers = 0, .paint_stacks = true}};
  rt.run([] {
    run("by_call", by_call{});
    run("by_recursion", by_recursion{});
    run("by_pointer", by_pointer{});
    tell(ramie::spawn_actor<by_message>(ramie::actor_options{.name = "by_message"}));
    tell(ramie::spawn_actor<start>(ramie::actor_options{.name = "by_mailbox"}, by_mailbox{}));
  });
  for (const ramie::stack_use& one : ramie::stack_usage()) std::printf("%s %zu\n", one.name.c_str(), one.most_bytes);
}
