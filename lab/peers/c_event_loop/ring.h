// As much of io_uring as the programs here need, by system calls: Debian's liburing 2.3 has no rings of buffers. One ring
// belongs to one thread. The interface is that of io_uring_setup(2), io_uring_enter(2) and linux/io_uring.h.
#include <errno.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// What the low 16 bits of an operation's user data say; above them the buffer (16 bits) and the descriptor (32).
enum { ring_accepted = 1, ring_received, ring_sent };

struct ring {
  int fd;
  unsigned entries, mask, cq_mask;
  unsigned *head, *tail, *cq_head, *cq_tail;
  unsigned submitted;  // of tail, what the kernel has been told
  struct io_uring_sqe* sqes;
  struct io_uring_cqe* cqes;
  struct io_uring_buf_ring* buffers;
  unsigned buffers_mask, buffer_bytes;
  char* memory;
};

static inline void ring_die(const char* what) {
  fprintf(stderr, "io_uring: %s: %s\n", what, strerror(errno));
  exit(1);
}

static inline void ring_give_back(struct ring* r, uint16_t id) {
  uint16_t tail = r->buffers->tail;
  struct io_uring_buf* one = &r->buffers->bufs[tail & r->buffers_mask];
  one->addr = (uint64_t)(uintptr_t)(r->memory + (size_t)id * r->buffer_bytes);
  one->len = r->buffer_bytes;
  one->bid = id;
  __atomic_store_n(&r->buffers->tail, (uint16_t)(tail + 1), __ATOMIC_RELEASE);
}

// `entries` is a power of two.
static inline void ring_open(struct ring* r, unsigned entries) {
  struct io_uring_params p = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
                              .cq_entries = 4 * entries};
  r->fd = (int)syscall(SYS_io_uring_setup, entries, &p);
  if (r->fd < 0) ring_die("io_uring_setup");
  size_t size = p.sq_off.array + p.sq_entries * sizeof(unsigned);
  size_t cq = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
  if (cq > size) size = cq;
  char* at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQ_RING);
  r->sqes = mmap(NULL, p.sq_entries * sizeof *r->sqes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQES);
  if (at == MAP_FAILED || r->sqes == MAP_FAILED) ring_die("mmap");
  r->entries = p.sq_entries;
  r->head = (unsigned*)(at + p.sq_off.head);
  r->tail = (unsigned*)(at + p.sq_off.tail);
  r->mask = *(unsigned*)(at + p.sq_off.ring_mask);
  r->cq_head = (unsigned*)(at + p.cq_off.head);
  r->cq_tail = (unsigned*)(at + p.cq_off.tail);
  r->cq_mask = *(unsigned*)(at + p.cq_off.ring_mask);
  r->cqes = (struct io_uring_cqe*)(at + p.cq_off.cqes);
  unsigned* array = (unsigned*)(at + p.sq_off.array);
  for (unsigned i = 0; i < p.sq_entries; ++i) array[i] = i;
  r->submitted = *r->tail;
}

// Buffers that the kernel chooses from. Their number is a power of two.
static inline void ring_add_buffers(struct ring* r, unsigned buffers, unsigned buffer_bytes) {
  r->buffers_mask = buffers - 1;
  r->buffer_bytes = buffer_bytes;
  r->buffers = mmap(NULL, buffers * sizeof(struct io_uring_buf), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  r->memory = mmap(NULL, (size_t)buffers * buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (r->buffers == MAP_FAILED || r->memory == MAP_FAILED) ring_die("mmap");
  struct io_uring_buf_reg reg = {.ring_addr = (uint64_t)(uintptr_t)r->buffers, .ring_entries = buffers};
  if (syscall(SYS_io_uring_register, r->fd, IORING_REGISTER_PBUF_RING, &reg, 1) != 0) ring_die("io_uring_register");
  for (unsigned i = 0; i < buffers; ++i) ring_give_back(r, (uint16_t)i);
}

static inline void ring_enter(struct ring* r, unsigned least) {
  unsigned tail = *r->tail;
  unsigned count = tail - r->submitted;
  long done = syscall(SYS_io_uring_enter, r->fd, count, least, IORING_ENTER_GETEVENTS, NULL, 0);
  if (done < 0 && errno != EINTR && errno != EAGAIN && errno != EBUSY) ring_die("io_uring_enter");
  if (done > 0) r->submitted += (unsigned)done;
}

static inline struct io_uring_sqe* ring_entry(struct ring* r) {
  while (*r->tail - __atomic_load_n(r->head, __ATOMIC_ACQUIRE) == r->entries) ring_enter(r, 0);
  struct io_uring_sqe* e = &r->sqes[*r->tail & r->mask];
  memset(e, 0, sizeof *e);
  return e;
}

static inline void ring_push(struct ring* r) { __atomic_store_n(r->tail, *r->tail + 1, __ATOMIC_RELEASE); }

static inline void ring_accept(struct ring* r, int listener) {
  struct io_uring_sqe* e = ring_entry(r);
  e->opcode = IORING_OP_ACCEPT;
  e->fd = listener;
  e->ioprio = IORING_ACCEPT_MULTISHOT;
  e->user_data = ring_accepted;
  ring_push(r);
}

static inline void ring_receive(struct ring* r, int fd) {
  struct io_uring_sqe* e = ring_entry(r);
  e->opcode = IORING_OP_RECV;
  e->fd = fd;
  e->ioprio = IORING_RECV_MULTISHOT;
  e->flags = IOSQE_BUFFER_SELECT;
  e->user_data = (uint64_t)(unsigned)fd << 32 | ring_received;
  ring_push(r);
}

static inline void ring_send(struct ring* r, int fd, uint16_t buffer, unsigned offset, unsigned size) {
  struct io_uring_sqe* e = ring_entry(r);
  e->opcode = IORING_OP_SEND;
  e->fd = fd;
  e->addr = (uint64_t)(uintptr_t)(r->memory + (size_t)buffer * r->buffer_bytes + offset);
  e->len = size;
  e->msg_flags = MSG_WAITALL | MSG_NOSIGNAL;
  e->user_data = (uint64_t)(unsigned)fd << 32 | (uint64_t)buffer << 16 | ring_sent;
  ring_push(r);
}

static inline void ring_read(struct ring* r, int fd, void* to, unsigned size, uint64_t position, uint64_t user_data) {
  struct io_uring_sqe* e = ring_entry(r);
  e->opcode = IORING_OP_READ;
  e->fd = fd;
  e->addr = (uint64_t)(uintptr_t)to;
  e->len = size;
  e->off = position;
  e->user_data = user_data;
  ring_push(r);
}

static inline void ring_wait(struct ring* r) { ring_enter(r, 1); }

static inline int ring_next(struct ring* r, struct io_uring_cqe* out) {
  unsigned head = *r->cq_head;
  if (head == __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE)) return 0;
  *out = r->cqes[head & r->cq_mask];
  __atomic_store_n(r->cq_head, head + 1, __ATOMIC_RELEASE);
  return 1;
}
