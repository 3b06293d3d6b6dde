#include <ramie/sync/recursive_mutex.hpp>

#include <ramie/base/error.hpp>

namespace ramie {

void recursive_mutex::throw_too_deep() {
  throw usage_error{"ramie: recursive_mutex: locked more than 4,294,967,295 times"};
}

}  // namespace ramie
