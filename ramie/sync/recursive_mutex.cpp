#include <ramie/sync/recursive_mutex.hpp>

#include <ramie/base/error.hpp>

namespace ramie {

void recursive_mutex::throw_too_deep() { throw usage_error{"ramie: recursive_mutex: locked too often"}; }

}  // namespace ramie
