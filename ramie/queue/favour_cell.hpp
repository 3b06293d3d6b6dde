// Where a worker announces which mutex it is using by favour (mutex.cpp: F1). Each cell has one writer, which a
// word in the mutex would not have: its favourites change. Cells pass from workers that have ended to new ones
// and are never freed, so that a mutex may read its favourite's cell even after that worker's runtime has ended.
#pragma once

#include <ramie/base/atomic.hpp>

namespace ramie::detail {

struct alignas(128) favour_cell {
  atomic<const void*> inside{nullptr};
  favour_cell* next_free = nullptr;
};

/// Takes a cell at construction and releases it at destruction. Throws std::bad_alloc.
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
