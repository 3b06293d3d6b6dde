// Whether an exception could leave the functions on the stack, by the tables that compilers write for unwinding.
//
//  E1 A function whose code has handlers or clean-up, or which is noexcept, has a table of its calls. One that is not
//     listed lets nothing out: the function is noexcept, as destructors are, or the compiler knew that the callee is.
//     std::terminate would be called at this frame.
//  E2 A call that is listed names the types of its handlers, if it has any. The nearest that would catch decides, since
//     what swallows is known not to throw, so that its own call may not be listed either (E1).
//  E3 Handlers of the library that throw again what they caught stand behind one for `passes_on`, which marks them. One
//     for everything has to be in a function of its own, which is never inlined: handlers that come after one for
//     everything are not listed, so what the caller's are could not be told.
//  E4 Clang lists the calls of a noexcept function, too, with a handler for everything that calls
//     __clang_call_terminate. It is told from others by its code, which calls that first of all.
// What this takes for a frame that lets nothing out is one. It misses some, and then the exception is thrown: a
// noexcept function that cleans up, or has handlers for others, lists its calls in order to do so, as any other does.
// Its caller's table still tells, unless the compiler has made both one function, or the caller has no table (with
// clang, a function with handlers for others hides what lies further out, since its handler begins with these).
// (Whether its clean-up goes on unwinding or ends the program could be told by whether the function lists a call for
// that; but gcc puts it into a part of the function that cannot be found from here.) Clang's are missed as well where
// this is not linked into the same program or library.
#pragma once

#include <ramie/base/config.hpp>

namespace ramie::detail {

/// E3: try { ... } catch (const passes_on&) { throw; } catch (const cancelled&) { ... throw; }
struct passes_on {};

/// The nearest frame that `cancelled`, thrown here, could not leave: its lowest address while it calls. What lies below
/// was made by what it has called. Null: there is none, or a handler comes first. Not looked at are the innermost
/// `skipped` frames, of which the caller's is the first. (Not those below an address: under AddressSanitizer locals may
/// lie elsewhere.) Looks at the calling stack; takes about a microsecond. Does not suspend.
[[nodiscard]] RAMIE_NOINLINE const char* nearest_no_throw_frame(int skipped);

}  // namespace ramie::detail
