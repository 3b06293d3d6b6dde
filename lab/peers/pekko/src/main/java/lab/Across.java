package lab;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.pekko.actor.AbstractActor;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.ExtendedActorSystem;
import org.apache.pekko.actor.Props;
import org.apache.pekko.pattern.Patterns;

/** Experiment 8: actors of two virtual machines, by Artery over TCP. Texts and numbers have serializers of their own in Pekko. */
final class Across {
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private Across() {}

  /** Counts texts; answers "how many" with the count, and a number with itself. */
  static final class Noting extends AbstractActor {
    private long noted = 0;

    @Override
    public Receive createReceive() {
      return receiveBuilder()
          .matchEquals("how many", ask -> getSender().tell(noted, getSelf()))
          .match(String.class, text -> ++noted)
          .match(Long.class, number -> getSender().tell(number, getSelf()))
          .build();
    }
  }

  private static ActorSystem system(String name, int workers) {
    Config config = ConfigFactory.parseString("""
        pekko.actor.provider = remote
        pekko.remote.artery { transport = tcp, canonical.hostname = "127.0.0.1", canonical.port = 0
          # The default of 3,072 loses what comes faster than it is sent.
          advanced.outbound-message-queue-size = 4000000 }
        pekko.loglevel = OFF
        pekko.stdout-loglevel = OFF
        pekko.log-dead-letters = off
        pekko.actor.default-dispatcher.fork-join-executor { parallelism-min = %d, parallelism-max = %d, parallelism-factor = 1.0 }
        """.formatted(workers, workers));
    return ActorSystem.create(name, config.withFallback(ConfigFactory.load()));
  }

  /** The far process: prints its address, serves until its input ends. */
  static void serve(int workers, int members) throws Exception {
    ActorSystem far = system("far", workers);
    far.actorOf(Props.create(Noting.class, Noting::new), "noting");
    for (int i = 0; i < members; ++i) far.actorOf(Props.create(Noting.class, Noting::new), "member" + i);
    System.out.println(((ExtendedActorSystem) far).provider().getDefaultAddress());
    System.out.flush();
    while (System.in.read() >= 0) { }
    System.exit(0);
  }

  private static double processorSeconds(String pid) throws Exception {
    String text = Files.readString(Path.of("/proc/" + pid + "/stat"));
    String[] words = text.substring(text.lastIndexOf(')') + 2).split(" ");
    return (Long.parseLong(words[11]) + Long.parseLong(words[12])) / 100.0;
  }

  private static Object ask(ActorRef whom, Object what) throws Exception {
    return Patterns.ask(whom, what, PATIENCE).toCompletableFuture().get();
  }

  static int run(Frame f) throws Exception {
    int members = (int) f.number("members", 16);
    String java = ProcessHandle.current().info().command().orElse("java");
    Process farProcess = new ProcessBuilder(java, "-XX:+UseParallelGC", "-Xms1g", "-XX:-UsePerfData", "-cp", System.getProperty("java.class.path"),
        "lab.Main", "across_far", "--workers=" + f.workers, "--members=" + members).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    try (BufferedReader lines = new BufferedReader(new InputStreamReader(farProcess.getInputStream()))) {
      String address = lines.readLine();
      ActorSystem near = system("near", f.workers);
      ActorRef there = near.actorSelection(address + "/user/noting").resolveOne(PATIENCE).toCompletableFuture().get();
      List<ActorRef> all = new ArrayList<>();
      for (int i = 0; i < members; ++i)
        all.add(near.actorSelection(address + "/user/member" + i).resolveOne(PATIENCE).toCompletableFuture().get());
      String farPid = Long.toString(farProcess.pid());
      String text = "x".repeat((int) f.number("size", 64));
      return f.measure("pekko", "1.1.3", f.workload.equals("across_ask") ? "request" : "message", () -> {
        double before = processorSeconds("self") + processorSeconds(farPid);
        Frame.Outcome o = f.workload.equals("across_ask") ? requests(there, f.number("count", 2000))
            : f.workload.equals("across_tell") ? messages(List.of(there), f.number("count", 500_000), text)
            : messages(all, f.number("count", 20_000), text);
        Map<String, Double> figures = new java.util.HashMap<>(o.figures());
        figures.put("processor_ns_per_unit", (processorSeconds("self") + processorSeconds(farPid) - before) * 1e9 / o.units());
        return new Frame.Outcome(o.seconds(), o.units(), o.ok(), figures);
      });
    } finally {
      farProcess.destroyForcibly();
    }
  }

  private static Frame.Outcome messages(List<ActorRef> to, long count, String text) throws Exception {
    long before = 0, after = 0;
    for (ActorRef one : to) before += (Long) ask(one, "how many");
    long start = System.nanoTime();
    for (long i = 0; i < count; ++i)
      for (ActorRef one : to) one.tell(text, ActorRef.noSender());
    for (ActorRef one : to) after += (Long) ask(one, "how many");
    double seconds = (System.nanoTime() - start) * 1e-9;
    long lost = count * to.size() - (after - before);
    return new Frame.Outcome(seconds, count * to.size(), lost == 0, Map.of("lost", (double) lost));
  }

  private static Frame.Outcome requests(ActorRef there, long count) throws Exception {
    double[] us = new double[(int) count];
    boolean ok = true;
    long begin = System.nanoTime();
    for (int i = 0; i < count; ++i) {
      long start = System.nanoTime();
      ok = ask(there, (long) i).equals((long) i) && ok;
      us[i] = (System.nanoTime() - start) * 1e-3;
    }
    double seconds = (System.nanoTime() - begin) * 1e-9;
    Arrays.sort(us);
    return new Frame.Outcome(seconds, count, ok, Map.of("p50_us", us[us.length / 2], "p99_us", us[us.length * 99 / 100]));
  }
}
