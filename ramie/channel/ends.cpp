#include <ramie/channel/ends.hpp>

#include <ramie/base/error.hpp>

#include <string>

namespace ramie::detail {

void throw_no_end(const char* call) {
  throw usage_error{std::string{"ramie: channel: "} + call +
                    ": this end holds no channel: default-constructed, moved from, or reset"};
}

}  // namespace ramie::detail
