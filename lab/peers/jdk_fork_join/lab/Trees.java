package lab;

import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveAction;

/** Fork and join on the JDK's ForkJoinPool. A node's sum is a field, for a RecursiveTask would box it. */
public final class Trees {
  private static final int FAN_OUT = 10;

  private abstract static class Node extends RecursiveAction {
    long sum;
  }

  private static final class Skynet extends Node {
    private final long first;
    private final long leaves;
    private Skynet next; // of those that its parent forked, the one before

    Skynet(long first, long leaves) {
      this.first = first;
      this.leaves = leaves;
    }

    @Override
    protected void compute() {
      if (leaves == 1) {
        sum = first;
        return;
      }
      long part = leaves / FAN_OUT;
      Skynet forked = null;
      for (int i = 1; i < FAN_OUT; ++i) {
        Skynet child = new Skynet(first + i * part, part);
        child.next = forked;
        forked = child;
        child.fork();
      }
      Skynet own = new Skynet(first, part);
      own.compute();
      long total = own.sum;
      for (Skynet child = forked; child != null; child = child.next) { // the top of the deque first
        child.join();
        total += child.sum;
      }
      sum = total;
    }
  }

  private static final class Range extends Node {
    private final long low;
    private final long high;

    Range(long low, long high) {
      this.low = low;
      this.high = high;
    }

    @Override
    protected void compute() {
      if (low == high) {
        sum = low;
        return;
      }
      long middle = low + (high - low) / 2;
      Range left = new Range(low, middle);
      Range right = new Range(middle + 1, high);
      left.fork();
      right.compute();
      left.join();
      sum = left.sum + right.sum;
    }
  }

  private static long nodes(long leaves) {
    return leaves == 1 ? 1 : 1 + FAN_OUT * nodes(leaves / FAN_OUT);
  }

  public static void main(String[] words) throws Exception {
    Frame f = new Frame(words);
    boolean skynet = f.workload.equals("skynet");
    if (!skynet && !f.workload.equals("sum")) Frame.fail("there is no workload " + f.workload);
    if (!f.style.equals("fork")) Frame.fail("there is no style " + f.style);
    long n = skynet ? f.number("leaves", 1_000_000) : f.number("high", 10_000_000);
    long units = skynet ? nodes(n) : 2 * n - 1;
    long right = skynet ? n * (n - 1) / 2 : n * (n + 1) / 2;
    ForkJoinPool pool = new ForkJoinPool(f.workers);
    int code = f.measure("jdk_fork_join", System.getProperty("java.version"), skynet ? "fiber" : "process", () -> pool.submit(() -> {
      long start = System.nanoTime();
      Node root = skynet ? new Skynet(0, n) : new Range(1, n);
      root.invoke();
      return new Frame.Outcome((System.nanoTime() - start) / 1e9, units, root.sum == right);
    }).get());
    pool.shutdown();
    System.exit(code);
  }
}
