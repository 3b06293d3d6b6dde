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
  }

  long number(String name, long standard) {
    String value = rest.get(name);
    return value == null ? standard : Long.parseLong(value);
  }

  static void fail(String what) {
    System.err.println("peer: " + what);
    System.exit(2);
  }

  /** Warms up, measures, prints; returns the exit code. */
  int measure(String system, String version, String unit, Callable<Outcome> once) throws Exception {
    long base = statusBytes("VmRSS:");
    boolean ok = true;
    for (int i = 0; i < warmup; ++i) ok &= once.call().ok();
    List<Outcome> all = new ArrayList<>();
    for (int i = 0; i < runs; ++i) {
      System.gc(); // no run pays for the garbage of the one before
      all.add(once.call());
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
            + "\"seconds\":%s,\"ns_per_unit\":%s,\"peak_rss_bytes\":%d,\"base_rss_bytes\":%d,\"ok\":%b%s}%n",
        system, version, workload, style, workers, unit, units, Arrays.toString(seconds), median * 1e9 / units,
        statusBytes("VmHWM:"), base, ok, figures.isEmpty() ? "" : ",\"figures\":{" + String.join(",", figures) + "}");
    System.out.flush();
    return ok ? 0 : 1;
  }

  /** Of objects that are alive: what a collector leaves lying about says nothing about what they need. */
  static long liveBytes() {
    System.gc();
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }

  static long statusBytes(String field) throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith(field)) return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024;
    }
    return 0;
  }
}
