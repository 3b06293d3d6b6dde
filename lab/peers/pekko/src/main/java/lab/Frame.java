package lab;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

/** Options, clock, and ramie-lab's JSON object. */
final class Frame {
  record Outcome(double seconds, long units, boolean ok, Map<String, Double> figures) {
    Outcome(double seconds, long units, boolean ok) {
      this(seconds, units, ok, Map.of());
    }
  }

  final String workload;
  final String style;
  final int workers;
  private final int runs;
  private final int warmup;
  private final long leastMs; // a measured run repeats the work until it has taken so long
  private final long pauseMs; // between repetitions
  private final Map<String, String> rest = new HashMap<>();

  Frame(String[] words) {
    if (words.length == 0) fail("which workload?");
    workload = words[0];
    for (String word : Arrays.asList(words).subList(1, words.length)) {
      int equals = word.indexOf('=');
      if (!word.startsWith("--") || equals < 0) fail("'" + word + "' is no --name=value");
      rest.put(word.substring(2, equals), word.substring(equals + 1));
    }
    style = rest.getOrDefault("style", "");
    workers = (int) number("workers", 1);
    runs = (int) Math.max(1, number("runs", 5));
    warmup = (int) number("warmup", 5);
    leastMs = number("least-ms", 0);
    pauseMs = number("pause-ms", 0);
  }

  long number(String name, long standard) {
    String value = rest.get(name);
    return value == null ? standard : Long.parseLong(value);
  }

  static void fail(String what) {
    System.err.println("peer: " + what);
    System.exit(2);
  }

  /** A measured run; the result is the mean of its repetitions, whose number is added to the list. */
  private Outcome runMeasured(Callable<Outcome> once, List<Long> repeats) throws Exception {
    System.gc(); // no run pays for the garbage of the one before
    Outcome all = once.call();
    double seconds = all.seconds();
    Map<String, Double> figures = new HashMap<>(all.figures());
    boolean ok = all.ok();
    long n = 1;
    for (; ok && seconds * 1e3 < leastMs && n < 1_000_000; ++n) {
      if (pauseMs > 0) Thread.sleep(pauseMs);
      Outcome next = once.call();
      seconds += next.seconds();
      next.figures().forEach((name, value) -> figures.merge(name, value, Double::sum));
      ok = next.ok();
    }
    repeats.add(n);
    double each = n;
    figures.replaceAll((name, sum) -> sum / each);
    return new Outcome(seconds / n, all.units(), ok, figures);
  }

  /** Warms up, measures, prints; returns the exit code. */
  int measure(String system, String version, String unit, Callable<Outcome> once) throws Exception {
    long base = statusBytes("VmRSS:");
    boolean ok = true;
    for (int i = 0; i < warmup; ++i) ok &= once.call().ok();
    List<Outcome> all = new ArrayList<>();
    List<Long> repeats = new ArrayList<>();
    for (int i = 0; i < runs; ++i) {
      all.add(runMeasured(once, repeats));
      ok &= all.get(i).ok();
    }
    double[] seconds = all.stream().mapToDouble(Outcome::seconds).toArray();
    double[] sorted = seconds.clone();
    Arrays.sort(sorted);
    double median = (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
    long units = all.get(0).units();
    List<String> figures = new ArrayList<>();
    for (String name : all.get(0).figures().keySet()) {
      figures.add("\"" + name + "\":" + all.stream().map(run -> run.figures().get(name)).toList());
    }
    System.out.printf(
        "{\"system\":\"%s\",\"version\":\"%s\",\"workload\":\"%s\",\"style\":\"%s\",\"workers\":%d,\"unit\":\"%s\",\"units\":%d,"
            + "\"seconds\":%s,\"repeats\":%s,\"ns_per_unit\":%s,\"peak_rss_bytes\":%d,\"base_rss_bytes\":%d,\"ok\":%b%s}%n",
        system, version, workload, style, workers, unit, units, Arrays.toString(seconds), repeats, median * 1e9 / units,
        statusBytes("VmHWM:"), base, ok, figures.isEmpty() ? "" : ",\"figures\":{" + String.join(",", figures) + "}");
    System.out.flush();
    return ok ? 0 : 1;
  }

  /** Of the process, after what is free has gone back to the system; see java.sh beside workers.sh. */
  static long residentBytes() throws IOException {
    System.gc();
    return statusBytes("VmRSS:");
  }

  static long statusBytes(String field) throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith(field)) return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024;
    }
    return 0;
  }
}
