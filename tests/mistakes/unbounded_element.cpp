// says: ramie::channel: elements of an unbounded channel are moved when it grows, so moving one must not throw
// It would have to throw in the middle of growing.
#include <ramie/channel.hpp>

#include <memory>

struct word {
  word() = default;
  word(word&&) noexcept(false) {}
};

#ifdef MENDED
ramie::channel<std::unique_ptr<word>> words{ramie::unbounded};
#else
ramie::channel<word> words{ramie::unbounded};
#endif
