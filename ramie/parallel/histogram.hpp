// Counting by bins.
#pragma once

#include <ramie/base/error.hpp>
#include <ramie/machine/spin_lock.hpp>
#include <ramie/parallel/fold.hpp>
#include <ramie/parallel/ranges.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

namespace ramie::detail {

/// Tables of counts, one for each chunk that is being counted at the moment: about as many as workers.
template <class Count>
class count_tables {
 public:
  explicit count_tables(std::size_t bins) : bins_{bins} {}
  using table = std::vector<Count>;

  /// A table for the length of a block.
  class lease {
   public:
    explicit lease(count_tables& of) : of_{of}, mine_{of.take()} {}
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    ~lease() {
      std::lock_guard guard{of_.lock_};
      of_.free_.push_back(mine_);  // there is room for all
    }
    [[nodiscard]] Count* data() const noexcept { return mine_->data(); }

   private:
    count_tables& of_;
    table* mine_;
  };

  /// When all leases have ended.
  [[nodiscard]] const std::vector<std::unique_ptr<table>>& all() const noexcept { return all_; }

 private:
  table* take() {
    {
      std::lock_guard guard{lock_};
      if (!free_.empty()) {
        table* t = free_.back();
        free_.pop_back();
        return t;
      }
    }
    auto made = std::make_unique<table>(bins_);
    std::lock_guard guard{lock_};
    free_.reserve(all_.size() + 1);
    all_.push_back(std::move(made));
    return all_.back().get();
  }

  std::size_t bins_;
  spin_lock lock_;
  std::vector<std::unique_ptr<table>> all_;
  std::vector<table*> free_;
};

[[noreturn]] inline void throw_no_such_bin(std::size_t bin, std::size_t bins) {
  throw invalid_argument{"ramie: parallel::histogram: an element is of bin " + std::to_string(bin) +
                         ", and there are " + std::to_string(bins)};
}

template <class R, class Counts, class Proj>
void count_part(const std::ranges::iterator_t<R>& first, std::size_t begin, std::size_t end, Counts counts,
                std::size_t bins, Proj& proj) {
  local_function<Proj> project = proj;
  const auto stop = advanced(first, end);
  for (auto at = advanced(first, begin); at != stop; ++at) {
    const auto bin = static_cast<std::size_t>(std::invoke(project, *at));
    if (bin >= bins) [[unlikely]]
      throw_no_such_bin(bin, bins);
    ++counts[static_cast<std::iter_difference_t<Counts>>(bin)];
  }
}

}  // namespace ramie::detail

namespace ramie::parallel {

/// Adds 1 to bins[proj(element)] for each element; `bins` is a range of integers. Throws invalid_argument if there is
/// no such bin; what is in the bins then is unspecified. Memory: as many bins for each worker. Otherwise as for_each.
template <range R, range Bins, class Proj = std::identity>
  requires std::integral<std::ranges::range_value_t<Bins>> &&
           std::convertible_to<detail::projected_t<R, Proj>, std::size_t>
void histogram(R&& r, Bins&& bins, Proj proj = {}) {
  using count = std::ranges::range_value_t<Bins>;
  const auto first = std::ranges::begin(r);
  const auto first_bin = std::ranges::begin(bins);
  const std::size_t size = detail::size_of(r);
  const std::size_t bin_count = detail::size_of(bins);
  if (detail::workers_here() == 1) {
    detail::count_part<R>(first, 0, size, first_bin, bin_count, proj);
    return;
  }
  detail::count_tables<count> tables{bin_count};
  detail::for_chunks(size, [&](std::size_t begin, std::size_t end) {
    const typename detail::count_tables<count>::lease mine{tables};
    detail::count_part<R>(first, begin, end, mine.data(), bin_count, proj);
  });
  detail::for_chunks(bin_count, [&](std::size_t begin, std::size_t end) {
    for (const auto& table : tables.all())
      for (std::size_t i = begin; i != end; ++i) *detail::advanced(first_bin, i) += (*table)[i];
  });
}

}  // namespace ramie::parallel
