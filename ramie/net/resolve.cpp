#include <ramie/net/resolve.hpp>

#include <ramie/fiber/blocking.hpp>
#include <ramie/poll/io_error.hpp>
#include <ramie/sync/semaphore.hpp>

#include <netdb.h>

#include <cerrno>
#include <memory>

namespace ramie::net {

namespace {

constexpr std::ptrdiff_t calls_most = 16;  // a resolver that does not answer must not take all helper threads

counting_semaphore<calls_most>& permits() {
  static counting_semaphore<calls_most> all{calls_most};
  return all;
}

class resolver_category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "getaddrinfo"; }
  [[nodiscard]] std::string message(int code) const override { return ::gai_strerror(code); }
};

struct answer {
  std::vector<endpoint> found;
  int code = 0;
  int system = 0;  // errno, if code is EAI_SYSTEM
};

/// Throws std::bad_alloc.
answer ask(const std::string& host, const std::string& service, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* all = nullptr;
  answer a;
  a.code =
      ::getaddrinfo(host.empty() ? nullptr : host.c_str(), service.empty() ? nullptr : service.c_str(), &hints, &all);
  if (a.code == EAI_SYSTEM) a.system = errno;
  if (a.code != 0) return a;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner{all, &::freeaddrinfo};
  for (const addrinfo* i = all; i != nullptr; i = i->ai_next)
    a.found.push_back(endpoint::of(i->ai_addr, i->ai_addrlen));
  return a;
}

}  // namespace

std::vector<endpoint> resolve(std::string_view host, std::string_view service, std::source_location where) {
  static const resolver_category category;
  detail::check_no_zero("resolve: the host", host);
  detail::check_no_zero("resolve: the service", service);
  permits().acquire(where);
  struct permit {
    ~permit() { permits().release(); }
  } held;
  const std::string name{host}, port{service};
  answer a = blocking(
      [&] {
        // AI_ADDRCONFIG leaves out families for which the machine has no address, even if the host is such an address.
        if (!name.empty())
          if (answer numeric = ask(name, port, AI_NUMERICHOST); numeric.code == 0) return numeric;
        return ask(name, port, AI_ADDRCONFIG);
      },
      where);
  if (a.code == 0) return std::move(a.found);
  const std::string what = "resolve \"" + name + "\", service \"" + port + "\"";
  if (a.code == EAI_SYSTEM) throw io_error{what, {a.system, std::system_category()}};
  throw io_error{what, {a.code, category}};
}

}  // namespace ramie::net
