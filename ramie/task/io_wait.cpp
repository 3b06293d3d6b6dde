#include <ramie/task/io_wait.hpp>

namespace ramie::detail {
const io_reasons io_reason{};
}  // namespace ramie::detail
