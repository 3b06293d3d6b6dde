package lab;

import java.util.concurrent.CompletableFuture;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.javadsl.Behaviors;

final class PingPong {
  private PingPong() {}

  record Ping(long value, ActorRef<Long> from) {}

  private static Behavior<Ping> ponger() {
    return Behaviors.receiveMessage(ping -> {
      ping.from().tell(ping.value() + 1);
      return Behaviors.same();
    });
  }

  static Behavior<Long> pinger(long rounds, CompletableFuture<Long> result) {
    return Behaviors.setup(context -> {
      ActorRef<Ping> other = context.spawnAnonymous(ponger());
      other.tell(new Ping(0, context.getSelf()));
      return Behaviors.receiveMessage(value -> {
        if (value < rounds) {
          other.tell(new Ping(value, context.getSelf()));
          return Behaviors.same();
        }
        result.complete(value);
        return Behaviors.stopped(); // and the other one with it, its child
      });
    });
  }
}
