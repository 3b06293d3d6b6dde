// The signals that a thread of the library's own leaves to the user's threads.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace ramie::detail {

/// Blocks all signals in the calling thread but those for errors of its own and for profilers; `before`: what was
/// blocked.
inline void block_signals(sigset_t& before) noexcept {
  sigset_t blocked;
  ::sigfillset(&blocked);
  for (const int allowed : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF})
    ::sigdelset(&blocked, allowed);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
}

}  // namespace ramie::detail
