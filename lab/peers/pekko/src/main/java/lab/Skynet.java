package lab;

import java.util.concurrent.CompletableFuture;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.javadsl.AbstractBehavior;
import org.apache.pekko.actor.typed.javadsl.ActorContext;
import org.apache.pekko.actor.typed.javadsl.Behaviors;
import org.apache.pekko.actor.typed.javadsl.Receive;

/** An actor a node; a leaf tells its parent and stops, every other node adds up ten of those. */
final class Skynet extends AbstractBehavior<Long> {
  private final ActorRef<Long> parent;
  private long sum = 0;
  private int missing = 10;

  private Skynet(ActorContext<Long> context, ActorRef<Long> parent, long first, long leaves) {
    super(context);
    this.parent = parent;
    long part = leaves / 10;
    for (int i = 0; i < 10; ++i) context.spawnAnonymous(node(context.getSelf(), first + i * part, part));
  }

  static Behavior<Long> node(ActorRef<Long> parent, long first, long leaves) {
    return Behaviors.setup(context -> {
      if (leaves > 1) return new Skynet(context, parent, first, leaves);
      parent.tell(first);
      return Behaviors.stopped();
    });
  }

  static Behavior<Long> root(long leaves, CompletableFuture<Long> result) {
    return Behaviors.setup(context -> {
      context.spawnAnonymous(node(context.getSelf(), 0, leaves));
      return Behaviors.receiveMessage(sum -> {
        result.complete(sum);
        return Behaviors.stopped();
      });
    });
  }

  @Override
  public Receive<Long> createReceive() {
    return newReceiveBuilder().onAnyMessage(this::add).build();
  }

  private Behavior<Long> add(Long part) {
    sum += part;
    if (--missing > 0) return this;
    parent.tell(sum);
    return Behaviors.stopped();
  }
}
