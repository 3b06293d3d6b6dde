// Experiment 6b in plain C: reads of 4 KiB from a file.
//
//   c_files files --style=pread|io_uring --runs=N --warmup=N --count=N --depth=N --megabytes=N --sequential=0|1 --direct=0|1
//
// pread: a thread for each read under way. io_uring: one thread, one ring (DEFER_TASKRUN); a read that has ended is
// followed by the next, and all that are to be begun are told to the kernel at once.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "ring.h"

enum { block_bytes = 4096, runs_most = 1000 };

static long count = 200000, depth = 1, megabytes = 64, sequential, direct;
static uint64_t blocks;
static int fd;
static atomic_long next_read, right;

static int failed(const char* call) {
  fprintf(stderr, "c_files: %s: %s\n", call, strerror(errno));
  exit(1);
}

static char* new_block(void) {
  char* b = aligned_alloc(block_bytes, block_bytes);
  if (b == NULL) failed("aligned_alloc");
  return b;
}

// Each block begins with its number and ends with the number's complement. The file has no name.
static void make_file(void) {
  const char* folder = getenv("TMPDIR");
  char name[4096];
  snprintf(name, sizeof name, "%s/c_files.XXXXXX", folder == NULL ? "/var/tmp" : folder);
  int writer = mkostemp(name, O_CLOEXEC);
  if (writer < 0) failed(name);
  fd = open(name, O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
  unlink(name);
  if (fd < 0) failed("open");
  blocks = (uint64_t)megabytes * 256;
  char* b = new_block();
  memset(b, 0, block_bytes);
  for (uint64_t i = 0; i < blocks; ++i) {
    uint64_t last = ~i;
    memcpy(b, &i, sizeof i);
    memcpy(b + block_bytes - sizeof last, &last, sizeof last);
    if (write(writer, b, block_bytes) != block_bytes) failed("write");
  }
  if (fsync(writer) != 0) failed("fsync");
  close(writer);
  free(b);
}

static int is_block(const char* b, uint64_t number) {
  uint64_t first, last;
  memcpy(&first, b, sizeof first);
  memcpy(&last, b + block_bytes - sizeof last, sizeof last);
  return first == number && last == ~number;
}

// What is read next; 0: there is no more. The numbers are those of lab/workloads/files.cpp.
static int take(uint64_t* number) {
  long i = atomic_fetch_add_explicit(&next_read, 1, memory_order_relaxed);
  if (i >= count) return 0;
  uint64_t x = (uint64_t)i;
  if (!sequential) {
    x = (x + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    x ^= x >> 31;
  }
  *number = x % blocks;
  return 1;
}

static void* read_by_pread(void* unused) {
  char* b = new_block();
  long good = 0;
  for (uint64_t number; take(&number);) {
    if (pread(fd, b, block_bytes, (off_t)(number * block_bytes)) != block_bytes) failed("pread");
    good += is_block(b, number);
  }
  atomic_fetch_add(&right, good);
  free(b);
  return unused;
}

static void all_by_pread(void) {
  pthread_t* threads = calloc((size_t)depth, sizeof *threads);
  for (long i = 1; i < depth; ++i)
    if (pthread_create(&threads[i], NULL, read_by_pread, NULL) != 0) failed("pthread_create");
  read_by_pread(NULL);
  for (long i = 1; i < depth; ++i) pthread_join(threads[i], NULL);
  free(threads);
}

static void all_by_ring(void) {
  static struct ring ring;  // for all runs
  if (ring.entries == 0) {
    unsigned entries = 1;
    while (entries < depth) entries *= 2;
    ring_open(&ring, entries);
  }
  char** buffers = calloc((size_t)depth, sizeof *buffers);
  uint64_t* numbers = calloc((size_t)depth, sizeof *numbers);
  long under_way = 0, good = 0;
  for (long i = 0; i < depth; ++i) {
    buffers[i] = new_block();
    if (!take(&numbers[i])) continue;
    ring_read(&ring, fd, buffers[i], block_bytes, numbers[i] * block_bytes, (uint64_t)i);
    ++under_way;
  }
  while (under_way > 0) {
    ring_wait(&ring);
    for (struct io_uring_cqe done; ring_next(&ring, &done);) {
      if (done.res != block_bytes) {
        errno = done.res < 0 ? -done.res : EIO;
        failed("read");
      }
      uint64_t i = done.user_data;
      good += is_block(buffers[i], numbers[i]);
      if (take(&numbers[i])) ring_read(&ring, fd, buffers[i], block_bytes, numbers[i] * block_bytes, i);
      else --under_way;
    }
  }
  atomic_fetch_add(&right, good);
  for (long i = 0; i < depth; ++i) free(buffers[i]);
  free(buffers);
  free(numbers);
}

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int ascending(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void print_list(const char* name, const double* values, long n, double factor) {
  printf("\"%s\":[", name);
  for (long i = 0; i < n; ++i) printf("%s%.9g", i == 0 ? "" : ",", values[i] * factor);
  printf("]");
}

int main(int argc, char** argv) {
  long runs = 5, warmup = 1, workers = 1;
  const char* style = "pread";
  struct {
    const char* name;
    long *value, least, most;
  } options[] = {{"--count=", &count, 1, 1000000000},  {"--depth=", &depth, 1, 1024},
                 {"--megabytes=", &megabytes, 1, 1 << 20}, {"--sequential=", &sequential, 0, 1},
                 {"--direct=", &direct, 0, 1},            {"--runs=", &runs, 1, runs_most},
                 {"--warmup=", &warmup, 0, runs_most},    {"--workers=", &workers, 1, 1024}};
  if (argc < 2 || strcmp(argv[1], "files") != 0) {
    fprintf(stderr, "c_files: which workload? There is files\n");
    return 2;
  }
  for (int i = 2; i < argc; ++i) {
    int known = strncmp(argv[i], "--style=", 8) == 0;
    if (known) style = argv[i] + 8;
    for (size_t o = 0; o < sizeof options / sizeof *options; ++o) {
      size_t n = strlen(options[o].name);
      if (strncmp(argv[i], options[o].name, n) != 0) continue;
      *options[o].value = atol(argv[i] + n);
      known = *options[o].value >= options[o].least && *options[o].value <= options[o].most;
    }
    if (!known) {
      fprintf(stderr, "c_files: what is %s?\n", argv[i]);
      return 2;
    }
  }
  void (*read_all)(void) = strcmp(style, "io_uring") == 0 ? all_by_ring : strcmp(style, "pread") == 0 ? all_by_pread : NULL;
  if (read_all == NULL) {
    fprintf(stderr, "c_files: files has no style %s\n", style);
    return 2;
  }
  make_file();
  static double seconds[runs_most], cpu[runs_most], sorted[runs_most];
  int ok = 1;
  for (long i = -warmup; i < runs; ++i) {
    next_read = right = 0;
    double cpu_before = now(CLOCK_PROCESS_CPUTIME_ID), before = now(CLOCK_MONOTONIC);
    read_all();
    double took = now(CLOCK_MONOTONIC) - before;
    ok = ok && right == count;
    if (i < 0) continue;
    seconds[i] = sorted[i] = took;
    cpu[i] = now(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
  }
  qsort(sorted, (size_t)runs, sizeof *sorted, ascending);
  double median = (sorted[(runs - 1) / 2] + sorted[runs / 2]) / 2;
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  printf("{\"system\":\"c\",\"version\":\"gnu11\",\"workload\":\"files\",\"style\":\"%s\",\"workers\":%ld,\"unit\":\"read\","
         "\"units\":%ld,", style, workers, count);
  print_list("seconds", seconds, runs, 1);
  printf(",\"ns_per_unit\":%.9g,\"peak_rss_bytes\":%ld,\"ok\":%s,\"figures\":{", median / (double)count * 1e9,
         use.ru_maxrss * 1024, ok ? "true" : "false");
  print_list("cpu_ns_per_read", cpu, runs, 1e9 / (double)count);
  printf("}}\n");
  return ok ? 0 : 1;
}
