// Releases what a thread has taken when it ends, even if that was taken in the destructor of a thread_local.
#pragma once

namespace ramie::detail {

/// Calls give(kept) when the calling thread ends: before the destructors of thread_local variables that were made
/// earlier, after those of variables made later. May be called from such a destructor, repeatedly. On the main thread,
/// after its thread_local variables are gone, it has no effect: static destructors run then, and the process ends. Does
/// not throw; false if there is no memory for it: then nothing is called.
bool at_thread_end(void (*give)(void* kept), void* kept) noexcept;

}  // namespace ramie::detail
