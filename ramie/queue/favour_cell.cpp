#include <ramie/machine/spin_lock.hpp>
#include <ramie/queue/favour_cell.hpp>

#include <mutex>

namespace ramie::detail {

namespace {
constinit spin_lock guard;
constinit favour_cell* free_cells = nullptr;  // under `guard`
}  // namespace

own_favour_cell::own_favour_cell() : cell_{nullptr} {
  {
    const std::lock_guard hold{guard};
    cell_ = free_cells;
    if (cell_ != nullptr) free_cells = cell_->next_free;
  }
  if (cell_ == nullptr) cell_ = new favour_cell;
}

own_favour_cell::~own_favour_cell() {
  const std::lock_guard hold{guard};
  cell_->next_free = free_cells;
  free_cells = cell_;
}

}  // namespace ramie::detail
