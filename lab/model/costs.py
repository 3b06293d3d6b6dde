"""What things cost, in nanoseconds, and where each figure is from."""

import json
from bisect import bisect_left
from dataclasses import asdict, dataclass, field


def between(figures, x):
    """Of [[x, y]] the y for an x: on the line between the two around it, or that of the nearest end."""
    if not figures:
        return 0.0
    i = bisect_left([at for at, _ in figures], x)
    if i == 0 or i == len(figures):
        return figures[min(i, len(figures) - 1)][1]
    (low, below), (high, above) = figures[i - 1], figures[i]
    return below + (above - below) * (x - low) / (high - low)


@dataclass
class Costs:
    # Measured on one worker.
    message: list = field(default_factory=list)  # [[actors, ns]]: told and handled here, by how many there are
    self_message: float = 0.0  # an actor's to itself, handled in the same turn
    message_shared: float = 0.0  # the same through the common queue, which nobody else uses
    yield_switch: float = 0.0  # from one fiber to the next
    node_channel: float = 0.0  # skynet: a fiber with a channel
    node_shared: float = 0.0  # the same from the common queue, breadth first, so that all have stacks at once
    node_dealt: float = 0.0  # the same where children are dealt to the workers
    node_fork: float = 0.0  # sum: a part, forked and joined
    fiber_small: float = 0.0  # experiment 4: a fiber and its result, beside what it computes
    root: float = 0.0  # a square root of experiment 4
    factorisation: float = 0.0  # one of experiment 3
    ring_message: float = 0.0  # a message of experiment 3
    # [[bytes, ns]]: an access to state at random, by how much state the core touches in all.
    access: list = field(default_factory=list)
    # Measured on two.
    touch: float = 50.0  # an actor's control part, or a mailbox, that another core had last
    line: float = 0.0  # a line of state that another core had last
    send: float = 0.0  # to give work to another worker: its inbox, and whether it sleeps; half of it on each side
    notice: float = 1_000.0  # from sending to a worker that searches until it has the message
    wake: float = 0.0  # the same to one that sleeps
    wake_call: float = 0.0  # of that, what the sender itself pays
    steal: float = 2_000.0  # to look for work, find it, and take it away
    lock_pass: float = 50.0  # to take the common queue's lock, which another core had last; one after the other
    channel_pass: float = 0.0  # the same of a channel's lock, with its element
    # The scheduler's own figures.
    search: float = 40_000.0  # how long an idle worker looks around before it sleeps
    # Not to be measured where all cores share a cache: times so much across caches of one node, and across nodes.
    factor_cache: float = 2.0
    factor_node: float = 3.0
    private_bytes: float = 1 << 20  # of the caches that a core has to itself
    sources: dict = field(default_factory=dict)  # name: "measured", or where else the figure is from

    def factor(self, level):
        """Times how much does it cost to take something from so far?"""
        return (1.0, 1.0, self.factor_cache, self.factor_node)[level]

    def access_ns(self, touched):
        """An access to state by a core that touches so many bytes."""
        return between(self.access, touched)

    def message_ns(self, actors):
        """A message, where so many actors take turns."""
        return between(self.message, actors)

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file, indent=1)
            file.write("\n")

    @classmethod
    def load(cls, data):
        return cls(**data)
