#include "files.hpp"

#include "../engine.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace ramie::interleave {

namespace {
std::array<kernel_lock, 64> locks;
std::size_t locks_given = 0;

result put(std::deque<char>& to, const char* from, std::size_t size) {
  to.insert(to.end(), from, from + size);
  return static_cast<result>(size);
}

result take(std::deque<char>& from, char* to, std::size_t size) {
  const std::size_t n = std::min(size, from.size());
  std::copy_n(from.begin(), n, to);
  from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(n));
  return static_cast<result>(n);
}
}  // namespace

// Two files of one run share a lock only if there are too many of them.
kernel_lock& next_kernel_lock() noexcept { return locks[locks_given++ % locks.size()]; }

void forget_kernel_locks() noexcept {
  locks = {};
  locks_given = 0;
}

void pass_through(kernel_lock& l) noexcept {
  if (active == nullptr) return;
  active->drain(active->self());
  if (weak_memory* const weak = active->weak(); weak != nullptr)
    weak->modify(*active, &l.word, l.word, l.word + 1, std::memory_order_acq_rel);
  ++l.word;
}

// ---- event sets ----------------------------------------------------------------------------------------------------

event_set::~event_set() {
  for (const auto& i : items_) std::erase(i->of->items_, i.get());
}

void event_set::tell(item& i) noexcept {
  pass_through(lock);
  if (!i.pending) pending_.push_back(&i);
  i.pending = true;
  if (active != nullptr) active->wake(this, 1);
}

result event_set::add(file& f, std::uint32_t events, std::uint64_t tag) {
  for (const auto& i : items_)
    if (i->of == &f) return -EEXIST;
  items_.push_back(std::make_unique<item>(item{this, &f, events | EPOLLERR | EPOLLHUP, tag}));
  f.items_.push_back(items_.back().get());
  if ((f.mask() & items_.back()->events) != 0) tell(*items_.back());
  return 0;
}

result event_set::remove(file& f) noexcept {
  const auto it = std::find_if(items_.begin(), items_.end(), [&](const auto& i) { return i->of == &f; });
  if (it == items_.end()) return -ENOENT;
  std::erase(f.items_, it->get());
  std::erase(pending_, it->get());
  items_.erase(it);
  return 0;
}

int event_set::take(epoll_event* into, int most) noexcept {
  int n = 0;
  while (n < most && !pending_.empty()) {
    item& i = *pending_.front();
    pending_.pop_front();
    i.pending = false;
    const std::uint32_t seen = i.of->mask() & i.events;
    if (seen == 0) continue;
    pass_through(i.of->lock);
    into[n] = {};
    into[n].events = seen;
    into[n].data.u64 = i.tag;
    ++n;
  }
  return n;
}

// ---- files ---------------------------------------------------------------------------------------------------------

file::~file() {
  while (!items_.empty()) items_.back()->set->remove(*this);
}
result file::read(char*, std::size_t) { return -EBADF; }
result file::write(const char*, std::size_t) { return -EBADF; }
void file::changed() noexcept {
  for (event_set::item* i : items_) i->set->tell(*i);
}

// ---- pipes ---------------------------------------------------------------------------------------------------------

pipe_end::pipe_end(std::shared_ptr<pipe_core> c, bool writes)
    : file{c->lock},
      core_{std::move(c)},
      writes_{writes},
      writers_before_{core_->writers.empty() ? core_->writers_ever : -1} {
  (writes_ ? core_->writers : core_->readers).push_back(this);
  if (writes_) ++core_->writers_ever;
}

pipe_end::~pipe_end() {
  auto& mine = writes_ ? core_->writers : core_->readers;
  std::erase(mine, this);
  if (!mine.empty()) return;
  for (pipe_end* other : writes_ ? core_->readers : core_->writers) other->changed();
}

std::uint32_t pipe_end::mask() const {
  std::uint32_t m = 0;
  if (writes_) {
    if (core_->bytes.size() < core_->room) m |= EPOLLOUT;
    if (core_->readers.empty()) m |= EPOLLERR;
  } else {
    if (!core_->bytes.empty()) m |= EPOLLIN;
    if (core_->writers.empty() && core_->writers_ever != writers_before_) m |= EPOLLHUP;
  }
  return m;
}

result pipe_end::read(char* to, std::size_t size) {
  if (writes_) return -EBADF;
  if (core_->bytes.empty()) return core_->writers.empty() ? 0 : -EAGAIN;
  const bool was_full = core_->bytes.size() >= core_->room;
  const result n = take(core_->bytes, to, size);
  if (was_full)
    for (pipe_end* w : core_->writers) w->changed();
  return n;
}

result pipe_end::write(const char* from, std::size_t size) {
  if (!writes_) return -EBADF;
  if (core_->readers.empty()) return -EPIPE;
  if (core_->bytes.size() >= core_->room) return -EAGAIN;
  const result n = put(core_->bytes, from, std::min(size, core_->room - core_->bytes.size()));
  for (pipe_end* r : core_->readers) r->changed();
  return n;
}

// ---- sockets -------------------------------------------------------------------------------------------------------

void socket_file::join(socket_file& a, socket_file& b) noexcept {
  a.peer_ = &b;
  b.peer_ = &a;
  a.connected_ = b.connected_ = true;
}

socket_file::~socket_file() {
  if (waits_at != nullptr) waits_at->forget(*this);
  if (peer_ == nullptr) return;
  socket_file& other = *peer_;
  other.peer_ = nullptr;
  pass_through(other.lock);
  if (!in_.empty()) {
    other.reset(ECONNRESET);
    return;
  }
  other.in_ended_ = true;
  (is_tcp ? other.in_finished_ : other.out_ended_) = true;
  other.changed();
}

void socket_file::reset(int code) noexcept {
  in_ended_ = out_ended_ = true;
  error_ = code;
  changed();
}

bool socket_file::has_half_free() const noexcept { return peer_ != nullptr && peer_->in_.size() * 2 <= room_; }

std::uint32_t socket_file::mask() const {
  std::uint32_t m = 0;
  if (waits_at != nullptr) return 0;
  if (!connected_) return error_ != 0 ? EPOLLOUT | EPOLLHUP | EPOLLERR | EPOLLIN : EPOLLOUT | EPOLLHUP;
  if (error_ != 0) m |= EPOLLERR;
  if (in_ended_) m |= EPOLLIN | EPOLLRDHUP;
  if (in_ended_ && out_ended_) m |= EPOLLHUP;
  if (!in_.empty()) m |= EPOLLIN;
  if (peer_ == nullptr || out_ended_ || has_half_free()) m |= EPOLLOUT;
  else found_no_room_ = true;
  return m;
}

result socket_file::read(char* to, std::size_t size) {
  if (peer_ != nullptr) pass_through(peer_->lock);
  if (!in_.empty()) {
    const result n = interleave::take(in_, to, size);
    if (peer_ != nullptr && peer_->has_half_free() && (!is_tcp || std::exchange(peer_->found_no_room_, false)))
      peer_->changed();
    return n;
  }
  if (in_finished_) return 0;
  if (error_ != 0) return -std::exchange(error_, 0);
  if (in_ended_) return 0;
  return connected_ ? -EAGAIN : -ENOTCONN;
}

result socket_file::write(const char* from, std::size_t size) {
  if (out_ended_) return error_ != 0 && is_tcp ? -std::exchange(error_, 0) : -EPIPE;
  if (!connected_) return -ENOTCONN;
  if (peer_ == nullptr) {  // gone: its answer to the first write is a reset
    reset(EPIPE);
    return static_cast<result>(size);
  }
  pass_through(peer_->lock);
  if (peer_->in_ended_) return is_tcp ? static_cast<result>(size) : -EPIPE;  // it has shut reading down
  if (peer_->in_.size() >= room_) {
    found_no_room_ = true;
    return -EAGAIN;
  }
  const result n = put(peer_->in_, from, std::min(size, room_ - peer_->in_.size()));
  peer_->changed();
  return n;
}

result socket_file::shut(bool reading, bool writing) {
  if (!connected_ || (in_ended_ && out_ended_)) return -ENOTCONN;
  if (writing && !std::exchange(out_ended_, true) && peer_ != nullptr) {
    pass_through(peer_->lock);
    peer_->in_ended_ = true;
    peer_->in_finished_ = is_tcp;
    peer_->changed();
  }
  if (reading) in_ended_ = true;
  changed();
  return 0;
}

int socket_file::take_error() noexcept { return std::exchange(error_, 0); }

void socket_file::refuse(int code) noexcept {
  waits_at = nullptr;
  error_ = code;
  changed();
}

// ---- listeners -----------------------------------------------------------------------------------------------------

listening_socket::~listening_socket() {
  for (socket_file* s : outside_) s->refuse(ECONNREFUSED);
  for (const auto& s : queue_)
    if (s->peer_ != nullptr) s->peer_->error_ = ECONNRESET;
}

void listening_socket::enter(socket_file& from) {
  auto mine = std::make_shared<socket_file>(is_tcp, room_);
  mine->name = name;
  mine->peer_name = from.name;
  from.peer_name = name;
  socket_file::join(*mine, from);
  queue_.push_back(std::move(mine));
  changed();
}

result listening_socket::connect(socket_file& from) {
  if (queue_.size() < backlog_) {
    enter(from);
    if (!is_tcp) return 0;
    from.changed();
    return -EINPROGRESS;  // there by now
  }
  if (!is_tcp) return -EAGAIN;
  from.waits_at = this;
  outside_.push_back(&from);
  return -EINPROGRESS;
}

std::shared_ptr<socket_file> listening_socket::take() {
  std::shared_ptr<socket_file> first = std::move(queue_.front());
  queue_.pop_front();
  if (!outside_.empty()) {
    socket_file& next = *outside_.front();
    outside_.pop_front();
    next.waits_at = nullptr;
    enter(next);
    next.changed();
  }
  return first;
}

void listening_socket::forget(const socket_file& from) noexcept { std::erase(outside_, &from); }

// ---- others --------------------------------------------------------------------------------------------------------

result event_file::write(const char*, std::size_t size) {
  raised_ = true;
  changed();
  return static_cast<result>(size);
}

}  // namespace ramie::interleave
