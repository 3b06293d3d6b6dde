#include <ramie/actor/exit.hpp>

namespace ramie {

const char* to_string(exit_kind kind) noexcept {
  switch (kind) {
    case exit_kind::alive: return "alive";
    case exit_kind::stopped: return "stopped";
    case exit_kind::shutdown: return "shutdown";
    case exit_kind::failed: return "failed";
    case exit_kind::killed: return "killed";
    case exit_kind::linked: return "linked";
    case exit_kind::gave_up: return "gave_up";
    case exit_kind::custom: return "custom";
    case exit_kind::node_lost: return "node_lost";
  }
  return "unknown";
}

std::string exit_reason::what() const {
  std::string text = to_string(kind_);
  if (!exception_) return text;
  try {
    std::rethrow_exception(exception_);
  } catch (const std::exception& e) {
    text += ": ";
    text += e.what();
  } catch (...) {
    text += ": an exception that is not a std::exception";
  }
  return text;
}

}  // namespace ramie
