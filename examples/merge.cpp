// Sources that end one after the other: a select whose cases are put together at run time, and channels that close by
// themselves.
#include <ramie/ramie.hpp>

#include <cstddef>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

namespace {

/// Sends the multiples of `step` up to `last`. The channel closes when the sender goes.
ramie::receiver<int> multiples(int step, int last) {
  auto ends = ramie::make_channel<int>(4);
  ramie::spawn([to = std::move(ends.sender), step, last] {
    for (int i = step; i <= last; i += step)
      if (to.send(i) != ramie::channel_status::ok) return;  // nobody listens any more
  }).detach();
  return std::move(ends.receiver);
}

/// Takes from whichever source has something, until all have ended.
template <class Each>
void merge(const std::vector<ramie::receiver<int>>& sources, Each each) {
  ramie::case_list cases;
  std::optional<int> got;
  for (const auto& from : sources) cases.add(ramie::on_recv(from, [&](std::optional<int> x) { got = x; }));
  for (std::size_t open = sources.size(); open != 0;) {
    const std::size_t which = ramie::select(cases);
    if (got) {
      each(which, *got);
    } else {
      cases.enable(which, false);  // it has ended
      --open;
    }
  }
}

}  // namespace

int main() {
  return ramie::run([] {
    const std::vector<ramie::receiver<int>> sources{multiples(2, 100), multiples(3, 100), multiples(5, 100)};
    std::vector<int> sums(sources.size());
    merge(sources, [&](std::size_t which, int x) { sums[which] += x; });
    std::printf("by 2: %d\nby 3: %d\nby 5: %d\n", sums[0], sums[1], sums[2]);
  });
}
