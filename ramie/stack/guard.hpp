// The lowest pages of a stack, which fault.
//
// MADV_GUARD_INSTALL marks the pages in the page table and leaves the mapping whole. mprotect splits it: two mappings a
// stack, of which vm.max_map_count allows 65,530 by default to the whole process. So those guards are counted,
// process-wide, and some mappings are left for everything else.
#pragma once

#include <ramie/stack/pool.hpp>
#include <ramie/stack/refusal.hpp>
#include <ramie/stack/system.hpp>

#include <cstddef>

namespace ramie::detail {

/// Asked once per process. Any thread.
bool kernel_has_guard_advice() noexcept;
/// Asks `with`: installs a guard on a page of its own and checks that the kernel itself faults on it.
bool probe_guard_advice(const memory_calls& with) noexcept;

/// Bytes of guard for a slot. Four pages where the slot is large enough, since a frame may step over one.
std::size_t guard_size(std::size_t slot_size, guard_kind kind) noexcept;

/// Makes the ranges fault, from the first one on; returns how many it did. If not all, `why` says what stopped it, and
/// the rest may be tried again. `kind` is not `automatic`. Any thread.
std::size_t install_guards(const iovec* ranges, std::size_t count, guard_kind kind, refusal& why) noexcept;

/// How many guards may be made by mprotect when the process may have `mappings_max` mappings.
std::size_t mprotect_guards_max(std::size_t mappings_max) noexcept;
/// How many exist now.
std::size_t guards_by_mprotect() noexcept;

}  // namespace ramie::detail
