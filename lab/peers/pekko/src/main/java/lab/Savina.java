package lab;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.javadsl.AbstractBehavior;
import org.apache.pekko.actor.typed.javadsl.ActorContext;
import org.apache.pekko.actor.typed.javadsl.Behaviors;
import org.apache.pekko.actor.typed.javadsl.Receive;

/** Classic actor programs of the Savina suite. What counts as a message is as in ramie's own. */
final class Savina {
  private Savina() {}

  /** The root of each program: adds up so many numbers, and ends, and its children with it. */
  private static final class Collector extends AbstractBehavior<Long> {
    private final CompletableFuture<Long> result;
    private long left;
    private long sum = 0;

    Collector(ActorContext<Long> context, long wanted, CompletableFuture<Long> result) {
      super(context);
      this.result = result;
      left = wanted;
    }

    @Override
    public Receive<Long> createReceive() {
      return newReceiveBuilder().onMessage(Long.class, this::add).build();
    }

    private Behavior<Long> add(long number) {
      sum += number;
      if (--left > 0) return this;
      result.complete(sum);
      return Behaviors.stopped();
    }
  }

  private static Behavior<Long> collect(long wanted, CompletableFuture<Long> result, Consumer<ActorContext<Long>> start) {
    return Behaviors.setup(context -> {
      start.accept(context);
      return new Collector(context, wanted, result);
    });
  }

  // ---- thread ring -------------------------------------------------------------------------------------------------

  sealed interface Ring permits Next, Token {}

  record Next(ActorRef<Ring> node) implements Ring {}

  record Token(long left) implements Ring {}

  private static final class Node extends AbstractBehavior<Ring> {
    private final ActorRef<Long> root;
    private ActorRef<Ring> next;

    Node(ActorContext<Ring> context, ActorRef<Long> root) {
      super(context);
      this.root = root;
    }

    @Override
    public Receive<Ring> createReceive() {
      return newReceiveBuilder().onMessage(Token.class, this::pass).onMessage(Next.class, this::join).build();
    }

    private Behavior<Ring> join(Next n) {
      next = n.node();
      return this;
    }

    private Behavior<Ring> pass(Token token) {
      if (token.left() > 0) next.tell(new Token(token.left() - 1));
      else root.tell(1L);
      return this;
    }
  }

  static Behavior<Long> threadRing(int nodes, long hops, CompletableFuture<Long> result) {
    return collect(1, result, context -> {
      List<ActorRef<Ring>> ring = new ArrayList<>();
      for (int i = 0; i < nodes; ++i) ring.add(context.spawnAnonymous(Behaviors.setup(c -> new Node(c, context.getSelf()))));
      for (int i = 0; i < nodes; ++i) ring.get(i).tell(new Next(ring.get((i + 1) % nodes)));
      ring.get(0).tell(new Token(hops));
    });
  }

  // ---- counting ----------------------------------------------------------------------------------------------------

  sealed interface Count permits Increment, HowMany {}

  record Increment() implements Count {}

  record HowMany(ActorRef<Long> from) implements Count {}

  private static final class Counter extends AbstractBehavior<Count> {
    private long count = 0;

    Counter(ActorContext<Count> context) {
      super(context);
    }

    @Override
    public Receive<Count> createReceive() {
      return newReceiveBuilder()
          .onMessage(Increment.class, i -> {
            ++count;
            return this;
          })
          .onMessage(HowMany.class, question -> {
            question.from().tell(count);
            return this;
          })
          .build();
    }
  }

  static Behavior<Long> counting(long count, CompletableFuture<Long> result) {
    return collect(1, result, context -> {
      ActorRef<Count> counter = context.spawnAnonymous(Behaviors.setup(Counter::new));
      context.spawnAnonymous(Behaviors.<Void>setup(c -> {
        for (long i = 0; i < count; ++i) counter.tell(new Increment());
        counter.tell(new HowMany(context.getSelf()));
        return Behaviors.empty();
      }));
    });
  }

  // ---- fork-join throughput ----------------------------------------------------------------------------------------

  private static final class Worker extends AbstractBehavior<Double> {
    private final ActorRef<Long> root;
    private long left;
    private long right = 0;

    Worker(ActorContext<Double> context, long messages, ActorRef<Long> root) {
      super(context);
      this.root = root;
      left = messages;
    }

    @Override
    public Receive<Double> createReceive() {
      return newReceiveBuilder().onMessage(Double.class, this::work).build();
    }

    private Behavior<Double> work(double of) {
      double sine = Math.sin(of);
      if (sine * sine <= 1.0) ++right;
      if (--left == 0) root.tell(right);
      return this;
    }
  }

  /** Sends 64 messages to each worker at a time, as ramie's program does before it gives way: else all would wait in memory. */
  private static Behavior<Long> distributor(List<ActorRef<Double>> to, long messages) {
    return Behaviors.receive((context, first) -> {
      long end = Math.min(first + 64, messages);
      for (long m = first; m < end; ++m) {
        for (ActorRef<Double> worker : to) worker.tell(37.2 + m);
      }
      if (end == messages) return Behaviors.stopped();
      context.getSelf().tell(end);
      return Behaviors.same();
    });
  }

  static Behavior<Long> forkJoinThroughput(int actors, long messages, CompletableFuture<Long> result) {
    return collect(actors, result, context -> {
      List<ActorRef<Double>> all = new ArrayList<>();
      for (int i = 0; i < actors; ++i) {
        all.add(context.spawnAnonymous(Behaviors.setup(c -> new Worker(c, messages, context.getSelf()))));
      }
      context.spawnAnonymous(distributor(all, messages)).tell(0L);
    });
  }

  // ---- big ---------------------------------------------------------------------------------------------------------

  sealed interface Play permits Begin, Ping, Pong {}

  record Begin(List<ActorRef<Play>> all) implements Play {}

  record Ping(ActorRef<Play> from) implements Play {}

  record Pong() implements Play {}

  private static final class Player extends AbstractBehavior<Play> {
    private final ActorRef<Long> root;
    private final Ping ping;
    private List<ActorRef<Play>> all;
    private long left;
    private long pongs = 0;

    Player(ActorContext<Play> context, long pings, ActorRef<Long> root) {
      super(context);
      this.root = root;
      ping = new Ping(context.getSelf());
      left = pings;
    }

    @Override
    public Receive<Play> createReceive() {
      return newReceiveBuilder()
          .onMessage(Ping.class, p -> {
            p.from().tell(new Pong());
            return this;
          })
          .onMessage(Pong.class, p -> {
            ++pongs;
            return next();
          })
          .onMessage(Begin.class, b -> {
            all = b.all();
            return next();
          })
          .build();
    }

    private Behavior<Play> next() {
      if (left-- > 0) all.get(ThreadLocalRandom.current().nextInt(all.size())).tell(ping);
      else root.tell(pongs);
      return this;
    }
  }

  static Behavior<Long> big(int actors, long pings, CompletableFuture<Long> result) {
    return collect(actors, result, context -> {
      List<ActorRef<Play>> all = new ArrayList<>();
      for (int i = 0; i < actors; ++i) {
        all.add(context.spawnAnonymous(Behaviors.setup(c -> new Player(c, pings, context.getSelf()))));
      }
      List<ActorRef<Play>> shared = List.copyOf(all);
      for (ActorRef<Play> player : all) player.tell(new Begin(shared));
    });
  }

  // ---- chameneos ---------------------------------------------------------------------------------------------------

  sealed interface ToMall permits Meet, Meetings {}

  record Meet(ActorRef<ToCreature> who, int colour) implements ToMall {}

  record Meetings(long count) implements ToMall {}

  sealed interface ToCreature permits Met, Change, Closed {}

  record Met(ActorRef<ToCreature> other, int colour) implements ToCreature {}

  record Change(int colour) implements ToCreature {}

  record Closed() implements ToCreature {}

  private static final class Mall extends AbstractBehavior<ToMall> {
    private final ActorRef<Long> root;
    private ActorRef<ToCreature> waiting;
    private long left;

    Mall(ActorContext<ToMall> context, long meetings, ActorRef<Long> root) {
      super(context);
      this.root = root;
      left = meetings;
    }

    @Override
    public Receive<ToMall> createReceive() {
      return newReceiveBuilder()
          .onMessage(Meet.class, this::meet)
          .onMessage(Meetings.class, m -> {
            root.tell(m.count());
            return this;
          })
          .build();
    }

    private Behavior<ToMall> meet(Meet m) {
      if (left == 0) {
        m.who().tell(new Closed());
      } else if (waiting == null) {
        waiting = m.who();
      } else {
        --left;
        waiting.tell(new Met(m.who(), m.colour()));
        waiting = null;
      }
      return this;
    }
  }

  private static final class Creature extends AbstractBehavior<ToCreature> {
    private final ActorRef<ToMall> mall;
    private int colour;
    private long count = 0;

    Creature(ActorContext<ToCreature> context, ActorRef<ToMall> mall, int colour) {
      super(context);
      this.mall = mall;
      this.colour = colour;
      mall.tell(new Meet(context.getSelf(), colour));
    }

    @Override
    public Receive<ToCreature> createReceive() {
      return newReceiveBuilder()
          .onMessage(Met.class, m -> {
            if (colour != m.colour()) colour = 3 - colour - m.colour();
            m.other().tell(new Change(colour));
            return again();
          })
          .onMessage(Change.class, c -> {
            colour = c.colour();
            return again();
          })
          .onMessage(Closed.class, c -> {
            mall.tell(new Meetings(count));
            return this;
          })
          .build();
    }

    private Behavior<ToCreature> again() {
      ++count;
      mall.tell(new Meet(getContext().getSelf(), colour));
      return this;
    }
  }

  static Behavior<Long> chameneos(int creatures, long meetings, CompletableFuture<Long> result) {
    return collect(creatures, result, context -> {
      ActorRef<ToMall> mall = context.spawnAnonymous(Behaviors.setup(c -> new Mall(c, meetings, context.getSelf())));
      for (int i = 0; i < creatures; ++i) {
        int colour = i % 3;
        context.spawnAnonymous(Behaviors.<ToCreature>setup(c -> new Creature(c, mall, colour)));
      }
    });
  }
}
