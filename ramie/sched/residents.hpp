// Residents of a scheduler: how they come to it, and go.
#pragma once

#include <ramie/worker/resident.hpp>

namespace ramie::detail {

/// Gives `r` to the calling worker's scheduler, so that make_resident_ready knows where it belongs. Throws usage_error
/// on a plain thread and after shutdown began; does not suspend.
void prepare_resident(resident& r);
/// It runs on that worker only. Call between prepare_resident and enlist_resident; throws invalid_argument for a number
/// there is not.
void pin_resident(resident& r, int to);
/// Counts it among what is alive there; its worker may be another one by now. Throws usage_error after shutdown began.
void enlist_resident(resident& r);
/// The last that happens to an enlisted resident, from its `rest`.
void strike_resident(resident& r) noexcept;
/// For calls of a fiber that start something new: throws `cancelled` if its runtime shuts down, as a wait there would.
/// Not within a shield, or while an exception passes: then what is started is taken, and ends soon.
void refuse_when_draining(const worker_base& w);
/// The runtime that the calling worker belongs to is shutting down.
[[nodiscard]] bool is_draining() noexcept;

}  // namespace ramie::detail
