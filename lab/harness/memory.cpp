#include <lab/harness/memory.hpp>

#include <lab/harness/error.hpp>

#include <fstream>
#include <string>
#include <string_view>
#include <utility>

namespace ramie::lab {
namespace {

/// The files of /proc that give one "Name:   1234 kB" a line.
class kernel_table {
 public:
  explicit kernel_table(std::string path) : path_{std::move(path)} {
    std::ifstream file{path_};
    for (std::string line; std::getline(file, line);) text_ += line + '\n';
    if (text_.size() == 1) throw lab_error{path_ + " cannot be read"};
  }

  [[nodiscard]] std::int64_t bytes(std::string_view name) const {
    const std::string start = '\n' + std::string{name} + ':';
    const std::size_t at = text_.find(start);
    if (at == std::string::npos) throw lab_error{path_ + " has no " + std::string{name}};
    return std::stoll(text_.substr(at + start.size())) * 1024;
  }

 private:
  std::string path_;
  std::string text_ = "\n";
};

}  // namespace

memory_use read_memory_use(const std::string& status_file) {
  const kernel_table status{status_file};
  return {.resident_bytes = status.bytes("VmRSS"),
          .peak_resident_bytes = status.bytes("VmHWM"),
          .page_table_bytes = status.bytes("VmPTE")};
}

std::int64_t available_memory() { return kernel_table{"/proc/meminfo"}.bytes("MemAvailable"); }

}  // namespace ramie::lab
