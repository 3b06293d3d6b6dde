// Metrics of a runtime under http://127.0.0.1:<port>/metrics, for a Prometheus server to fetch; here the program
// fetches them itself.
#include <ramie/prometheus.hpp>
#include <ramie/ramie.hpp>

#include <netinet/in.h>
#include <prometheus/exposer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>

namespace {

std::string fetch_metrics(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
  std::string answer;
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::send(connection, request.data(), request.size(), 0) == static_cast<ssize_t>(request.size())) {
    char part[4096];
    for (ssize_t size; (size = ::recv(connection, part, sizeof part, 0)) > 0;)
      answer.append(part, static_cast<std::size_t>(size));
  }
  ::close(connection);
  return answer;
}

}  // namespace

int main() {
  prometheus::Exposer exposer{"127.0.0.1:0"};  // any free port
  const auto metrics = std::make_shared<ramie::prometheus_collectable>();
  exposer.RegisterCollectable(metrics);

  ramie::runtime rt{{.workers = 2, .name = "shop"}};
  const auto served = metrics->add(rt);  // ends before the runtime does
  rt.run([] {
    for (int i = 0; i < 99; ++i) ramie::spawn([] {}).join();
  });

  // A fiber may fetch them too; the blocking call runs on another thread.
  std::istringstream text{
      rt.run([&] { return ramie::blocking([&] { return fetch_metrics(exposer.GetListeningPorts().at(0)); }); })};
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("ramie_spawned_total")) std::puts(line.c_str());
  return 0;
}
