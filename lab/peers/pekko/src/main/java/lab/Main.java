package lab;

import com.typesafe.config.ConfigFactory;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.ActorSystem;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.Props;
import org.apache.pekko.actor.typed.SpawnProtocol;
import org.apache.pekko.actor.typed.javadsl.AskPattern;
import org.apache.pekko.actor.typed.javadsl.Behaviors;

/** Typed actors of Pekko: the mixed case, ping-pong and skynet. */
public final class Main {
  private final ActorSystem<SpawnProtocol.Command> system;

  private Main(int workers) {
    system = ActorSystem.create(
        Behaviors.setup(context -> SpawnProtocol.create()), "lab",
        ConfigFactory.parseString(
                "pekko.actor.default-dispatcher.fork-join-executor { parallelism-min = " + workers + ", parallelism-max = "
                    + workers + ", parallelism-factor = 1.0 }\n"
                    + "pekko.loglevel = OFF\npekko.stdout-loglevel = OFF\npekko.log-dead-letters = off")
            .withFallback(ConfigFactory.load()));
  }

  private <T> void spawn(Behavior<T> behavior) throws Exception {
    AskPattern.<SpawnProtocol.Command, ActorRef<T>>ask(system,
        reply -> new SpawnProtocol.Spawn<>(behavior, "", Props.empty(), reply), Duration.ofSeconds(30), system.scheduler())
        .toCompletableFuture().get();
  }

  private interface Start<T> {
    Behavior<?> of(CompletableFuture<T> result);
  }

  /** Seconds from the spawn of an actor until it has completed its result. */
  private <T> double seconds(CompletableFuture<T> result, Start<T> start) throws Exception {
    long before = System.nanoTime();
    spawn(start.of(result));
    result.get();
    return (System.nanoTime() - before) * 1e-9;
  }

  private Frame.Outcome skynet(long leaves) throws Exception {
    CompletableFuture<Long> sum = new CompletableFuture<>();
    double seconds = seconds(sum, result -> Skynet.root(leaves, result));
    long nodes = 1;
    for (long n = leaves; n > 1; n /= 10) nodes += n;
    return new Frame.Outcome(seconds, nodes, sum.get() == leaves * (leaves - 1) / 2);
  }

  private Frame.Outcome pingpong(long messages) throws Exception {
    CompletableFuture<Long> last = new CompletableFuture<>();
    double seconds = seconds(last, result -> PingPong.pinger(messages / 2, result));
    return new Frame.Outcome(seconds, messages / 2 * 2, last.get() == messages / 2);
  }

  /** A program of {@link Savina}, of which the sum of what its actors found tells whether it was right. */
  private Frame.Outcome savina(long messages, long sum, Start<Long> start) throws Exception {
    CompletableFuture<Long> found = new CompletableFuture<>();
    double seconds = seconds(found, start);
    return new Frame.Outcome(seconds, messages, found.get() == sum);
  }

  private int savina(Frame f) throws Exception {
    long actors = f.number("actors", f.workload.equals("big") ? 120 : 60);
    long each = f.workload.equals("big") ? f.number("pings", 10_000) : f.number("messages", 10_000);
    long count = f.number("count", 1_000_000);
    long hops = f.number("hops", 2_000_000);
    long meetings = f.number("meetings", 200_000);
    return f.measure("pekko", "1.1.3", "message", () -> switch (f.workload) {
      case "thread_ring" -> savina(hops + 1, 1, r -> Savina.threadRing((int) f.number("nodes", 100), hops, r));
      case "counting" -> savina(count, count, r -> Savina.counting(count, r));
      case "fork_join_throughput" -> savina(actors * each, actors * each, r -> Savina.forkJoinThroughput((int) actors, each, r));
      case "big" -> savina(2 * actors * each, actors * each, r -> Savina.big((int) actors, each, r));
      default -> savina(4 * meetings, 2 * meetings, r -> Savina.chameneos((int) f.number("creatures", 100), meetings, r));
    });
  }

  /** Actors with a number as their state, all children of one. */
  private Frame.Outcome idle(long count) throws Exception {
    long before = Frame.residentBytes();
    CompletableFuture<ActorRef<Void>> made = new CompletableFuture<>();
    double seconds = seconds(made, result -> Behaviors.<Void>setup(context -> {
      for (long i = 0; i < count; ++i) context.spawnAnonymous(counter(0));
      result.complete(context.getSelf());
      return Behaviors.empty();
    }));
    double grown = Frame.residentBytes() - before;
    return new Frame.Outcome(seconds, count, made.isDone(), java.util.Map.of("resident_bytes_per_actor", grown / count));
  }

  private static Behavior<Long> counter(long sum) {
    return Behaviors.receiveMessage(n -> counter(sum + n));
  }

  private Frame.Outcome mixed(Mixed.Sizes sizes) throws Exception {
    CompletableFuture<Mixed.Found> found = new CompletableFuture<>();
    double seconds = seconds(found, result -> Mixed.collector(sizes, result));
    return new Frame.Outcome(seconds, sizes.messages(),
        found.get().messages() == sizes.messages() && found.get().right() == sizes.results());
  }

  public static void main(String[] words) throws Exception {
    Frame frame = new Frame(words);
    if (frame.workload.equals("across_far")) Across.serve(frame.workers, (int) frame.number("members", 16));
    if (frame.workload.startsWith("across_")) System.exit(Across.run(frame));
    Main main = new Main(frame.workers);
    int code = switch (frame.workload) {
      case "skynet" -> frame.measure("pekko", "1.1.3", "fiber", () -> main.skynet(frame.number("leaves", 1_000_000)));
      case "idle_actors" -> frame.measure("pekko", "1.1.3", "actor", () -> main.idle(frame.number("count", 1_000_000)));
      case "pingpong" -> frame.measure("pekko", "1.1.3", "message", () -> main.pingpong(frame.number("messages", 2_000_000)));
      case "thread_ring", "counting", "fork_join_throughput", "big", "chameneos" -> main.savina(frame);
      case "mixed" -> {
        Mixed.Sizes sizes = new Mixed.Sizes((int) frame.number("rings", 20), (int) frame.number("ring-size", 50),
            (int) frame.number("token", 10_000), (int) frame.number("repetitions", 5), frame.number("messages-only", 0) == 0);
        yield frame.measure("pekko", "1.1.3", "message", () -> main.mixed(sizes));
      }
      default -> {
        Frame.fail("there is no workload " + frame.workload);
        yield 2;
      }
    };
    main.system.terminate();
    main.system.getWhenTerminated().toCompletableFuture().get();
    System.exit(code);
  }
}
