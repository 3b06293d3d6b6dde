// Where a worker says which mutex it is using by favour just now (mutex.cpp: F1). One writer for each cell, which a
// word in the mutex would not have: its favourites change. Cells are handed from workers that have ended to new ones
// and are never freed, so that a mutex may look at that of its favourite even when that one's runtime has ended.
#pragma once

#include <ramie/base/atomic.hpp>

namespace ramie::detail {

struct alignas(128) favour_cell {
  atomic<const void*> inside{nullptr};
  favour_cell* next_free = nullptr;
};

/// Takes a cell when it is made and hands it on when it ends. Throws std::bad_alloc.
class own_favour_cell {
 public:
  own_favour_cell();
  own_favour_cell(const own_favour_cell&) = delete;
  own_favour_cell& operator=(const own_favour_cell&) = delete;
  ~own_favour_cell();
  [[nodiscard]] favour_cell* get() const noexcept { return cell_; }

 private:
  favour_cell* cell_;
};

}  // namespace ramie::detail
