package lab;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.javadsl.AbstractBehavior;
import org.apache.pekko.actor.typed.javadsl.ActorContext;
import org.apache.pekko.actor.typed.javadsl.Behaviors;
import org.apache.pekko.actor.typed.javadsl.Receive;

/** Experiment 3. */
final class Mixed {
  private Mixed() {}

  private static final long PRODUCT = 28_350_160_440_309_881L;

  record Sizes(int rings, int ringSize, int token, int repetitions, boolean factorises) {
    long messages() {
      return (long) rings * repetitions * ringSize * (token + 1L);
    }

    int results() {
      return factorises ? rings * repetitions : 0;
    }
  }

  record Found(long messages, int right) {}

  record Token(int value) {}

  sealed interface ToCollector permits Factors, MasterDone {}

  record Factors(List<Long> all) implements ToCollector {}

  record MasterDone(long messages) implements ToCollector {}

  private static final class Collector extends AbstractBehavior<ToCollector> {
    private final CompletableFuture<Found> result;
    private int mastersLeft;
    private int resultsLeft;
    private long messages = 0;
    private int right = 0;

    Collector(ActorContext<ToCollector> context, Sizes sizes, CompletableFuture<Found> result) {
      super(context);
      this.result = result;
      mastersLeft = sizes.rings();
      resultsLeft = sizes.results();
      for (int i = 0; i < sizes.rings(); ++i) {
        // Not its master's child: it may still have work to do when that one ends.
        ActorRef<Long> worker =
            sizes.factorises() ? context.spawnAnonymous(worker(context.getSelf(), sizes.repetitions())) : null;
        context.spawnAnonymous(Behaviors.<Token>setup(c -> new Master(c, sizes, context.getSelf(), worker)));
      }
    }

    @Override
    public Receive<ToCollector> createReceive() {
      return newReceiveBuilder()
          .onMessage(Factors.class, this::count)
          .onMessage(MasterDone.class, this::count)
          .build();
    }

    private Behavior<ToCollector> count(Factors factors) {
      if (factors.all().size() == 2 && factors.all().get(0) * factors.all().get(1) == PRODUCT) ++right;
      --resultsLeft;
      return look();
    }

    private Behavior<ToCollector> count(MasterDone done) {
      messages += done.messages();
      --mastersLeft;
      return look();
    }

    private Behavior<ToCollector> look() {
      if (mastersLeft > 0 || resultsLeft > 0) return this;
      result.complete(new Found(messages, right));
      return Behaviors.stopped();
    }
  }

  static Behavior<ToCollector> collector(Sizes sizes, CompletableFuture<Found> result) {
    return Behaviors.setup(context -> new Collector(context, sizes, result));
  }

  private static final class Master extends AbstractBehavior<Token> {
    private final Sizes sizes;
    private final ActorRef<ToCollector> collector;
    private final ActorRef<Long> worker;
    private ActorRef<Token> first;
    private int built = 0;
    private long rounds = 0;

    Master(ActorContext<Token> context, Sizes sizes, ActorRef<ToCollector> collector, ActorRef<Long> worker) {
      super(context);
      this.sizes = sizes;
      this.collector = collector;
      this.worker = worker;
      build();
    }

    private void build() {
      if (worker != null) worker.tell(PRODUCT);
      first = getContext().getSelf();
      for (int i = 1; i < sizes.ringSize(); ++i) first = getContext().spawnAnonymous(link(first));
      ++built;
      first.tell(new Token(sizes.token()));
    }

    @Override
    public Receive<Token> createReceive() {
      return newReceiveBuilder().onAnyMessage(this::turn).build();
    }

    private Behavior<Token> turn(Token token) {
      ++rounds;
      if (token.value() > 0) {
        first.tell(new Token(token.value() - 1));
        return this;
      }
      if (built < sizes.repetitions()) {
        build();
        return this;
      }
      collector.tell(new MasterDone(rounds * sizes.ringSize()));
      return Behaviors.stopped();
    }
  }

  private static Behavior<Token> link(ActorRef<Token> next) {
    return Behaviors.receiveMessage(token -> {
      next.tell(token);
      return token.value() == 0 ? Behaviors.stopped() : Behaviors.same();
    });
  }

  private static Behavior<Long> worker(ActorRef<ToCollector> collector, int tasks) {
    return Behaviors.receiveMessage(n -> {
      collector.tell(new Factors(factorise(n)));
      return tasks > 1 ? worker(collector, tasks - 1) : Behaviors.stopped();
    });
  }

  /** Trial division as the original has it: no end at the square root. */
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
}
