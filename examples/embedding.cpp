// ramie as a part of a program that has its own main loop and its own threads: a runtime is an ordinary object, and
// plain threads start fibers on it, wait for them, and talk to them over channels.
#include <ramie/ramie.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

/// The "back end" of such a program. Its fibers live as long as it does.
class spelling_service {
 public:
  spelling_service() : runtime_{{.workers = 2, .name = "spelling"}}, loop_{runtime_.spawn([this] { serve(); })} {}
  ~spelling_service() {
    requests_.close();
    loop_.join();  // a plain thread blocks where a fiber would be suspended
  }

  /// From any thread.
  std::size_t count_letters(std::string text) {
    ramie::channel<std::size_t> reply;
    if (requests_.send({std::move(text), &reply}) != ramie::channel_status::ok)
      throw std::runtime_error{"the service has ended"};
    return reply.recv().value();
  }

 private:
  struct request {
    std::string text;
    ramie::channel<std::size_t>* reply;
  };
  void serve() {
    ramie::scope under_way;
    for (request& r : requests_)
      under_way.spawn([r = std::move(r)] { static_cast<void>(r.reply->send(r.text.size())); });  // a fiber for each
    under_way.join();
  }

  ramie::runtime runtime_;
  ramie::channel<request> requests_{16};
  ramie::join_handle<void> loop_;
};

int main() {
  spelling_service service;
  std::map<std::string, std::size_t> letters;
  ramie::mutex lock;  // works for threads as well
  std::vector<std::thread> threads;
  for (const char* word : {"loom", "thread", "fibre", "ramie"})
    threads.emplace_back([&, word] {
      const std::size_t n = service.count_letters(word);
      std::lock_guard guard{lock};
      letters[word] = n;
    });
  for (std::thread& t : threads) t.join();
  for (const auto& [word, n] : letters) std::printf("%s: %zu\n", word.c_str(), n);

  // One call may be enough.
  ramie::runtime calculator{{.workers = 1}};
  std::printf("%d\n", calculator.run([] { return 6 * 7; }));
}
