// An echo server in plain C, by the kernel's own interfaces: what a runtime adds is what it takes more than this.
//
//   c_echo --style=epoll|io_uring --workers=N
//
// epoll: one level-triggered set a thread. io_uring: one ring a thread (DEFER_TASKRUN), multishot receives into a ring of
// buffers that the kernel chooses from. Each thread has a listener of its own on the same port (SO_REUSEPORT), so a
// connection belongs to one thread for its life.
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ring.h"

enum { buffer_size = 4096, events_most = 256 };

static int failed(const char* call) {
  fprintf(stderr, "c_echo: %s: %s\n", call, strerror(errno));
  exit(1);
}

static int listen_on(in_port_t* port) {
  int on = 1;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = *port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0 ||
      bind(fd, (struct sockaddr*)&address, size) != 0 || listen(fd, 4096) != 0 ||
      getsockname(fd, (struct sockaddr*)&address, &size) != 0)
    failed("listen");
  *port = address.sin_port;
  return fd;
}

static void no_delay(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Sends all; waits in the kernel where the other side does not read.
static int send_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return 0;
    data += n;
    size -= (size_t)n;
  }
  return 1;
}

_Noreturn static void* serve_epoll(void* argument) {
  int listener = *(int*)argument;
  int set = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
  if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, listener, &event) != 0) failed("epoll");
  struct epoll_event events[events_most];
  char buffer[buffer_size];
  for (;;) {
    int n = epoll_wait(set, events, events_most, -1);
    if (n < 0 && errno != EINTR) failed("epoll_wait");
    for (int i = 0; i < n; ++i) {
      int fd = events[i].data.fd;
      if (fd == listener) {
        int one = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (one < 0) continue;
        no_delay(one);
        event.data.fd = one;
        if (epoll_ctl(set, EPOLL_CTL_ADD, one, &event) != 0) failed("epoll_ctl");
        continue;
      }
      ssize_t got = recv(fd, buffer, sizeof buffer, 0);
      if (got <= 0 || !send_all(fd, buffer, (size_t)got)) close(fd);
    }
  }
}

_Noreturn static void* serve_ring(void* argument) {
  int listener = *(int*)argument;
  struct ring ring;
  ring_open(&ring, 4096);
  ring_add_buffers(&ring, 1024, buffer_size);
  ring_accept(&ring, listener);
  for (;;) {
    ring_wait(&ring);
    struct io_uring_cqe done;
    while (ring_next(&ring, &done)) {
      int fd = (int)(done.user_data >> 32);
      switch ((uint32_t)done.user_data & 0xffff) {
        case ring_accepted:
          if (done.res >= 0) {
            no_delay(done.res);
            ring_receive(&ring, done.res);
          }
          if (!(done.flags & IORING_CQE_F_MORE)) ring_accept(&ring, listener);
          break;
        case ring_received:
          if (done.res > 0) {
            // One send for each receive; the buffer goes back when it has been sent.
            ring_send(&ring, fd, (uint16_t)(done.flags >> IORING_CQE_BUFFER_SHIFT), 0, (unsigned)done.res);
            if (!(done.flags & IORING_CQE_F_MORE)) ring_receive(&ring, fd);
          } else if (done.res == -ENOBUFS) {
            ring_receive(&ring, fd);
          } else {
            close(fd);
          }
          break;
        case ring_sent:
          ring_give_back(&ring, (uint16_t)(done.user_data >> 16));
          break;
      }
    }
  }
}

int main(int argc, char** argv) {
  int workers = 1;
  void* (*serve)(void*) = serve_epoll;
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], "--workers=", 10) == 0)
      workers = atoi(argv[i] + 10);
    else if (strcmp(argv[i], "--style=io_uring") == 0)
      serve = serve_ring;
    else if (strcmp(argv[i], "--style=epoll") != 0) {
      fprintf(stderr, "c_echo: what is %s?\n", argv[i]);
      return 2;
    }
  }
  if (workers < 1 || workers > 1024) {
    fprintf(stderr, "c_echo: --workers is 1 to 1024\n");
    return 2;
  }
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  in_port_t port = 0;
  int* listeners = calloc((size_t)workers, sizeof *listeners);
  for (int i = 0; i < workers; ++i) listeners[i] = listen_on(&port);
  for (int i = 1; i < workers; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, &listeners[i]) != 0) failed("pthread_create");
  }
  printf("port %d\n", ntohs(port));
  fflush(stdout);
  serve(&listeners[0]);
}
