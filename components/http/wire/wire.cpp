#include "wire/wire.hpp"

#include <ramie/fiber.hpp>
#include <ramie/runtime.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace ramie::http {

/// Most connections of a server are idle, so one that waits holds no buffer; and if nothing comes for a while it gives
/// back what it would need again soon otherwise, the pages of its stack among that.
void wire::await_input(std::chrono::steady_clock::time_point deadline) {
  constexpr auto rests_after = std::chrono::seconds{1};  // a guess
  begin_ = end_ = 0;
  bytes_.reset();
  const auto first = std::chrono::steady_clock::now() + rests_after;
  bool rests = false;
  try {
    with_deadline(std::min(first, deadline), [&] { stream.wait_readable(); });
  } catch (const timeout_error&) {
    if (first >= deadline) throw;
    rests = true;
  }
  if (!rests) return;
  if (on_rest) on_rest();
  this_fiber::trim_stack();
  with_deadline(deadline, [&] { stream.wait_readable(); });
}

std::size_t wire::fill_until(std::chrono::steady_clock::time_point deadline) {
  if (input().empty()) await_input(deadline);
  if (bytes_ == nullptr) bytes_.reset(new std::byte[capacity_]);
  if (begin_ != 0) {
    std::memmove(bytes_.get(), bytes_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const std::span<std::byte> into{bytes_.get() + end_, capacity_ - end_};
  if (into.empty()) return 0;
  std::size_t n = 0;
  try {
    n = with_deadline(deadline, [&] { return stream.read_some(into); });
  } catch (const net::io_error&) {
    broken_.store(true, std::memory_order_relaxed);
    throw;
  }
  end_ += n;
  note_step();
  return n;
}

std::size_t wire::take(std::span<std::byte> into, std::chrono::nanoseconds time) {
  if (input().empty() && fill(time) == 0) return 0;
  const std::size_t n = std::min(into.size(), input().size());
  if (n != 0) std::memcpy(into.data(), input().data(), n);
  consume(n);
  return n;
}

void wire::write(std::string_view head, std::span<const std::byte> body, std::size_t* written) {
  constexpr std::size_t piece_most = 64 * 1024;
  std::size_t ignored = 0;
  std::size_t& done = written == nullptr ? ignored : *written;
  done = 0;
  for (;;) {
    const auto piece = body.first(std::min(body.size(), piece_most));
    const std::array<iovec, 2> pieces{iovec{const_cast<char*>(head.data()), head.size()},
                                      iovec{const_cast<std::byte*>(piece.data()), piece.size()}};
    std::size_t of_piece = 0;
    try {
      with_timeout(write_time_, [&] { stream.write_all(std::span{pieces}.first(piece.empty() ? 1 : 2), &of_piece); });
    } catch (const cancelled&) {
      done += of_piece;
      throw;
    } catch (...) {
      done += of_piece;
      broken_.store(true, std::memory_order_relaxed);
      throw;
    }
    done += of_piece;
    note_step();
    head = {};
    body = body.subspan(piece.size());
    if (body.empty()) return;
  }
}

}  // namespace ramie::http
