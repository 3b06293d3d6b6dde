// Shared by the parts of a dump: dump.cpp (what is written) and dump_signal.cpp (signals).
#pragma once

#include <ramie/context/frames.hpp>
#include <ramie/inspect/dump.hpp>
#include <ramie/worker/worker.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ramie::detail {

/// What a worker was running when it was asked.
struct sample {
  const stack* on = nullptr;
  const void* occupant = nullptr;
  std::size_t frames = 0;
  std::array<std::uintptr_t, 64> pcs;
};

/// The calling thread's sample, from its registers. False if it runs no fiber.
bool take_sample(const worker& mine, const frame_registers& from, std::size_t frames_most, sample& into) noexcept;

/// Another worker's sample, by a signal to its thread, which is alive. False if there is no handler (dump_on_signal),
/// or it does not answer soon. One caller at a time.
bool ask_for_sample(const worker& other, std::size_t frames_most, sample& into) noexcept;

/// Writes the dump that a signal has asked for, if one has. Allocates. For reporters::requested; any thread.
void write_requested_dump() noexcept;

/// A dump by code with these registers.
bool dump_from(int fd, const dump_options& options, const frame_registers& from) noexcept;

}  // namespace ramie::detail
