package lab;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.locks.ReentrantLock;

/** Virtual threads that talk by the queues of java.util.concurrent. */
public final class Virtual {
  private static final ThreadFactory THREADS = virtualThreads();

  /** Thread.ofVirtual().factory(), asked for by name: the compiler may be older than the machine that runs it. */
  private static ThreadFactory virtualThreads() {
    try {
      Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
      return (ThreadFactory) Class.forName("java.lang.Thread$Builder").getMethod("factory").invoke(builder);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("this JDK has no virtual threads", e);
    }
  }

  interface Body {
    void run() throws Exception;
  }

  private static Thread start(Body body) {
    Thread thread = THREADS.newThread(() -> {
      try {
        body.run();
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    });
    thread.start();
    return thread;
  }

  /** Seconds that `body` takes as a virtual thread. */
  private static double seconds(Body body) throws Exception {
    double[] taken = new double[1];
    start(() -> {
      long before = System.nanoTime();
      body.run();
      taken[0] = (System.nanoTime() - before) * 1e-9;
    }).join();
    return taken[0];
  }

  private static long nodes(long leaves) {
    return leaves == 1 ? 1 : leaves + nodes(leaves / 10);
  }

  private static void skynetNode(BlockingQueue<Long> parent, long first, long leaves) throws Exception {
    if (leaves == 1) {
      parent.put(first);
      return;
    }
    BlockingQueue<Long> children = new ArrayBlockingQueue<>(10);
    long part = leaves / 10;
    for (int i = 0; i < 10; ++i) {
      long child = first + i * part;
      start(() -> skynetNode(children, child, part));
    }
    long sum = 0;
    for (int i = 0; i < 10; ++i) sum += children.take();
    parent.put(sum);
  }

  private static CompletableFuture<Long> skynetFuture(long first, long leaves) {
    CompletableFuture<Long> result = new CompletableFuture<>();
    start(() -> {
      if (leaves == 1) {
        result.complete(first);
        return;
      }
      List<CompletableFuture<Long>> children = new ArrayList<>(10);
      for (int i = 0; i < 10; ++i) children.add(skynetFuture(first + i * (leaves / 10), leaves / 10));
      long sum = 0;
      for (CompletableFuture<Long> child : children) sum += child.get();
      result.complete(sum);
    });
    return result;
  }

  private static Frame.Outcome skynet(long leaves, boolean byQueue) throws Exception {
    long[] sum = new long[1];
    double seconds = seconds(() -> {
      if (byQueue) {
        BlockingQueue<Long> root = new ArrayBlockingQueue<>(1);
        start(() -> skynetNode(root, 0, leaves));
        sum[0] = root.take();
      } else {
        sum[0] = skynetFuture(0, leaves).get();
      }
    });
    return new Frame.Outcome(seconds, nodes(leaves), sum[0] == leaves * (leaves - 1) / 2);
  }

  private static CompletableFuture<Long> sumFuture(long low, long high) {
    CompletableFuture<Long> result = new CompletableFuture<>();
    start(() -> {
      if (low == high) {
        result.complete(low);
        return;
      }
      long middle = low + (high - low) / 2;
      CompletableFuture<Long> left = sumFuture(low, middle);
      CompletableFuture<Long> right = sumFuture(middle + 1, high);
      result.complete(left.get() + right.get());
    });
    return result;
  }

  private static Frame.Outcome sum(long high) throws Exception {
    long[] sum = new long[1];
    double seconds = seconds(() -> sum[0] = sumFuture(1, high).get());
    return new Frame.Outcome(seconds, 2 * high - 1, sum[0] == high * (high + 1) / 2);
  }

  private static Frame.Outcome pingpong(long messages, boolean synchronous) throws Exception {
    long rounds = messages / 2;
    long[] last = new long[1];
    double seconds = seconds(() -> {
      BlockingQueue<Long> ping = synchronous ? new SynchronousQueue<>() : new ArrayBlockingQueue<>(1);
      BlockingQueue<Long> pong = synchronous ? new SynchronousQueue<>() : new ArrayBlockingQueue<>(1);
      Thread other = start(() -> {
        for (long i = 0; i < rounds; ++i) pong.put(ping.take() + 1);
      });
      long value = 0;
      for (long i = 0; i < rounds; ++i) {
        ping.put(value);
        value = pong.take();
      }
      other.join();
      last[0] = value;
    });
    return new Frame.Outcome(seconds, 2 * rounds, last[0] == rounds);
  }

  private static Frame.Outcome manyToMany(BlockingQueue<Long> queue, long messages, int producers, int consumers)
      throws Exception {
    long each = messages / producers;
    long[] sums = new long[consumers];
    double seconds = seconds(() -> {
      List<Thread> sending = new ArrayList<>();
      List<Thread> receiving = new ArrayList<>();
      for (int i = 0; i < producers; ++i) {
        sending.add(start(() -> {
          for (long v = 1; v <= each; ++v) queue.put(v);
        }));
      }
      for (int i = 0; i < consumers; ++i) {
        int mine = i;
        receiving.add(start(() -> {
          long sum = 0;
          for (long v = queue.take(); v > 0; v = queue.take()) sum += v;
          sums[mine] = sum;
        }));
      }
      for (Thread t : sending) t.join();
      for (int i = 0; i < consumers; ++i) queue.put(0L); // the end, once for each
      for (Thread t : receiving) t.join();
    });
    long sum = 0;
    for (long s : sums) sum += s;
    return new Frame.Outcome(seconds, producers * each, sum == producers * (each * (each + 1) / 2));
  }

  private static double secondsOfAll(long number, Body each) throws Exception {
    return seconds(() -> {
      List<Thread> all = new ArrayList<>();
      for (long i = 0; i < number; ++i) all.add(start(each));
      for (Thread t : all) t.join();
    });
  }

  private static Frame.Outcome mutex(long fibers, long count) throws Exception {
    ReentrantLock lock = new ReentrantLock();
    long[] counter = new long[1];
    double seconds = secondsOfAll(fibers, () -> {
      for (long i = 0; i < count; ++i) {
        lock.lock();
        try {
          ++counter[0];
        } finally {
          lock.unlock();
        }
      }
    });
    return new Frame.Outcome(seconds, fibers * count, counter[0] == fibers * count);
  }

  private static Frame.Outcome yields(long fibers, long count) throws Exception {
    double seconds = secondsOfAll(fibers, () -> {
      for (long i = 0; i < count; ++i) Thread.yield();
    });
    return new Frame.Outcome(seconds, fibers * count, true);
  }

  private static Frame.Outcome spawnAndJoin(long count) throws Exception {
    long[] sum = new long[1];
    double seconds = seconds(() -> {
      for (long i = 0; i < count; ++i) {
        long value = i;
        start(() -> sum[0] += value).join();
      }
    });
    return new Frame.Outcome(seconds, count, sum[0] == count * (count - 1) / 2);
  }

  private static Frame.Outcome memory(long count) throws Exception {
    long before = Frame.residentBytes();
    CountDownLatch parked = new CountDownLatch((int) count);
    CountDownLatch ended = new CountDownLatch((int) count);
    CountDownLatch gate = new CountDownLatch(1);
    double seconds = seconds(() -> {
      for (long i = 0; i < count; ++i) {
        start(() -> {
          parked.countDown();
          gate.await();
          ended.countDown();
        });
      }
      parked.await();
    });
    long grown = Frame.residentBytes() - before;
    double ending = seconds(() -> {
      gate.countDown();
      ended.await();
    });
    return new Frame.Outcome(seconds, count, true,
        java.util.Map.of("resident_bytes_per_fiber", (double) grown / count, "wake_and_end_ns_per_fiber", ending * 1e9 / count));
  }

  private static boolean roots(long n) {
    double sum = 0;
    for (long i = 0; i < n; ++i) sum += Math.sqrt(thirteen);
    return sum > 0;
  }

  private static volatile double thirteen = 13; // or the root would be taken once

  /** Experiment 4. The queue has room for all results. */
  private static Frame.Outcome overhead(long n, int x) throws Exception {
    BlockingQueue<Boolean> done = new ArrayBlockingQueue<>(x);
    long[] right = new long[1];
    Body collect = () -> {
      for (int i = 0; i < x; ++i) right[0] += done.take() ? 1 : 0;
    };
    double direct = seconds(() -> {
      for (int i = 0; i < x; ++i) done.put(roots(n));
      collect.run();
    });
    double seconds = seconds(() -> {
      for (int i = 0; i < x; ++i) start(() -> done.put(roots(n)));
      collect.run();
    });
    return new Frame.Outcome(seconds, x, right[0] == 2L * x, java.util.Map.of("share_of_direct", direct / seconds));
  }

  private static final long PRODUCT = 28_350_160_440_309_881L;

  private static List<Long> factorise(long n) {
    List<Long> factors = new ArrayList<>();
    for (long d = 2; d < n;) {
      if (n % d == 0) {
        factors.add(d);
        n /= d;
      } else {
        d += d == 2 ? 1 : 2;
      }
    }
    factors.add(n);
    return factors;
  }

  /** Builds its rings one after the other; tells the collector how many messages have gone round. */
  private static void master(Frame f, BlockingQueue<Long> masters, BlockingQueue<Long> results) throws Exception {
    boolean factorises = f.number("messages-only", 0) == 0;
    long ringSize = f.number("ring-size", 50);
    long repetitions = f.number("repetitions", 5);
    BlockingQueue<Long> tasks = new LinkedBlockingQueue<>();
    if (factorises) {
      start(() -> {
        for (long i = 0; i < repetitions; ++i) {
          List<Long> factors = factorise(tasks.take());
          results.put(factors.size() == 2 ? factors.get(0) * factors.get(1) : 0L);
        }
      });
    }
    long rounds = 0;
    for (long i = 0; i < repetitions; ++i) {
      if (factorises) tasks.put(PRODUCT);
      BlockingQueue<Long> first = new LinkedBlockingQueue<>();
      BlockingQueue<Long> last = first;
      for (long j = 1; j < ringSize; ++j) {
        BlockingQueue<Long> from = last;
        BlockingQueue<Long> to = new LinkedBlockingQueue<>();
        start(() -> {
          long token;
          do {
            token = from.take();
            to.put(token);
          } while (token != 0);
        });
        last = to;
      }
      first.put(f.number("token", 10_000));
      for (long token = last.take();; token = last.take()) {
        ++rounds;
        if (token == 0) break;
        first.put(token - 1);
      }
    }
    masters.put(rounds * ringSize);
  }

  private static Frame.Outcome mixed(Frame f) throws Exception {
    long rings = f.number("rings", 20);
    long wanted = f.number("messages-only", 0) == 0 ? rings * f.number("repetitions", 5) : 0;
    long[] found = new long[2];
    double seconds = seconds(() -> {
      BlockingQueue<Long> masters = new LinkedBlockingQueue<>();
      BlockingQueue<Long> results = new LinkedBlockingQueue<>();
      for (long i = 0; i < rings; ++i) start(() -> master(f, masters, results));
      for (long i = 0; i < rings; ++i) found[0] += masters.take();
      for (long i = 0; i < wanted; ++i) found[1] += results.take() == PRODUCT ? 1 : 0;
    });
    long units = rings * f.number("repetitions", 5) * f.number("ring-size", 50) * (f.number("token", 10_000) + 1);
    return new Frame.Outcome(seconds, units, found[0] == units && found[1] == wanted);
  }

  private static Frame.Outcome once(Frame f) throws Exception {
    long messages = f.number("messages", 2_000_000);
    long count = f.number("count", 1_000_000);
    int capacity = (int) f.number("capacity", f.workload.equals("mpmc") ? 1024 : 128);
    return switch (f.workload) {
      case "skynet" -> skynet(f.number("leaves", 1_000_000), f.style.equals("queue"));
      case "sum" -> sum(f.number("high", 1_000_000));
      case "mixed" -> mixed(f);
      case "overhead" -> overhead(f.number("n", 1), (int) f.number("x", 100_000));
      case "pingpong" -> pingpong(messages, f.style.equals("synchronous"));
      case "stream" -> manyToMany(
          f.style.equals("buffered") ? new ArrayBlockingQueue<>(capacity) : new SynchronousQueue<>(), messages, 1, 1);
      case "mpmc" -> manyToMany(new ArrayBlockingQueue<>(capacity), messages, (int) f.number("producers", 4),
          (int) f.number("consumers", 4));
      case "mutex" -> mutex(f.number("fibers", 4), count);
      case "yield" -> yields(f.number("fibers", 2), count);
      case "spawn" -> spawnAndJoin(count);
      case "memory" -> memory(count);
      default -> throw new IllegalArgumentException("there is no workload " + f.workload);
    };
  }

  private static String unit(String workload) {
    return switch (workload) {
      case "sum" -> "process";
      case "mutex" -> "lock";
      case "yield" -> "switch";
      case "overhead" -> "call";
      case "skynet", "spawn", "memory" -> "fiber";
      default -> "message";
    };
  }

  public static void main(String[] words) throws Exception {
    if (words.length > 0 && words[0].equals("echo_server")) {
      Echo.serve(THREADS);
    }
    Frame frame = new Frame(words);
    System.exit(frame.measure("jdk_virtual", System.getProperty("java.version"), unit(frame.workload), () -> once(frame)));
  }
}
