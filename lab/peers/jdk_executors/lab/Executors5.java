package lab;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/** Experiment 5 on the executors of the JDK. */
public final class Executors5 {
  private final List<ExecutorService> executors = new ArrayList<>();
  private final List<Cell> cells = new ArrayList<>();
  private final long accesses;
  private final boolean talking;
  private final CountDownLatch allDone;

  /** Is in its executor's hands while it has mail. */
  private final class Cell implements Runnable {
    private final Queue<Long> mail = new ConcurrentLinkedQueue<>();
    private final AtomicInteger waiting = new AtomicInteger();
    private final ExecutorService executor;
    private final long[] words;
    private long random;

    Cell(ExecutorService executor, int size, long seed) {
      this.executor = executor;
      words = new long[size];
      random = seed * 0x9e3779b97f4a7c15L + 1;
    }

    private int below(int end) {
      random ^= random << 13;
      random ^= random >>> 7;
      random ^= random << 17;
      return (int) (((random >>> 32) * end) >>> 32);
    }

    void tell(long left) {
      mail.add(left);
      if (waiting.getAndIncrement() == 0) executor.execute(this);
    }

    @Override
    public void run() {
      long left = mail.poll();
      for (long i = 0; i < accesses; ++i) ++words[below(words.length)];
      if (left > 0) (talking ? cells.get(below(cells.size())) : this).tell(left - 1);
      if (waiting.decrementAndGet() > 0) executor.execute(this);
      if (left == 0) allDone.countDown();
    }
  }

  private Executors5(Frame f, long lines) {
    accesses = f.number("accesses", 100);
    talking = f.number("talking", 0) != 0;
    allDone = new CountDownLatch((int) lines);
    switch (f.style) {
      case "thread_pool" -> executors.add(Executors.newFixedThreadPool(f.workers));
      case "work_stealing" -> executors.add(Executors.newWorkStealingPool(f.workers));
      case "dedicated" -> {
        for (int i = 0; i < f.workers; ++i) executors.add(Executors.newSingleThreadExecutor());
      }
      default -> Frame.fail("there is no style " + f.style);
    }
    for (int i = 0; i < f.number("actors", 24); ++i) {
      cells.add(new Cell(executors.get(i % executors.size()), (int) (f.number("state", 32_000) / 8), i + 1));
    }
  }

  private static Frame.Outcome once(Frame f) throws Exception {
    long actors = f.number("actors", 24);
    long lines = f.number("talking", 0) != 0 ? f.number("messages", 12) : actors;
    long each = Math.max(1, f.number("count", 1_000_000) / lines);
    Executors5 all = new Executors5(f, lines);
    long before = System.nanoTime();
    for (long i = 0; i < lines; ++i) all.cells.get((int) (i % actors)).tell(each - 1);
    all.allDone.await();
    double seconds = (System.nanoTime() - before) * 1e-9;
    for (ExecutorService e : all.executors) e.shutdown();
    long touched = 0;
    for (Cell c : all.cells) {
      for (long word : c.words) touched += word;
    }
    return new Frame.Outcome(seconds, lines * each, touched == lines * each * all.accesses);
  }

  public static void main(String[] words) throws Exception {
    Frame f = new Frame(words);
    if (!f.workload.equals("affinity")) Frame.fail("there is no workload " + f.workload);
    System.exit(f.measure("jdk_executors", System.getProperty("java.version"), "message", () -> once(f)));
  }
}
