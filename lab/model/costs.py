"""The costs of operations, in nanoseconds, and the source of each figure."""

import json
from bisect import bisect_left
from dataclasses import asdict, dataclass, field


def between(figures, x):
    """Interpolates [[x, y]] linearly at x; beyond the ends, the nearest y."""
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
    message: list = field(default_factory=list)  # [[actors, ns]]: told and handled here, by the number of actors
    self_message: float = 0.0  # an actor's to itself, handled in the same turn
    message_shared: float = 0.0  # the same through the common queue, which no other worker uses
    yield_switch: float = 0.0  # a switch to the next fiber
    node_channel: float = 0.0  # skynet: a fiber with a channel
    node_shared: float = 0.0  # the same from the common queue, breadth first, so that all have stacks at once
    node_dealt: float = 0.0  # the same where children are dealt to the workers
    node_fork: float = 0.0  # sum: a part, forked and joined
    fiber_small: float = 0.0  # experiment 4: a fiber and its result, without its computation
    root: float = 0.0  # a square root of experiment 4
    factorisation: float = 0.0  # one of experiment 3
    ring_message: float = 0.0  # a message of experiment 3
    # [[bytes, ns]]: an access to state at random, by the state that the core touches in all.
    access: list = field(default_factory=list)
    # Measured on two.
    touch: float = 50.0  # an actor's control part, or a mailbox, that another core had last
    line: float = 0.0  # a line of state that another core had last
    send: float = 0.0  # to pass work to another worker: its inbox, and the look whether it sleeps; half of it on each side
    notice: float = 1_000.0  # from sending until a searching worker has the message
    wake: float = 0.0  # the same for a sleeping worker
    wake_call: float = 0.0  # the sender's part of that
    steal: float = 2_000.0  # to look for work, find it, and take it away
    lock_pass: float = 50.0  # to take the common queue's lock, which another core had last; serialised
    channel_pass: float = 0.0  # the same of a channel's lock, with its element
    # The scheduler's own figures.
    search: float = 40_000.0  # how long an idle worker searches before it sleeps
    # Cannot be measured if all cores share a cache: the factors across caches of one node, and across nodes.
    factor_cache: float = 2.0
    factor_node: float = 3.0
    private_bytes: float = 1 << 20  # of the private caches of a core
    sources: dict = field(default_factory=dict)  # name: "measured", or another source

    def factor(self, level):
        """The factor for an access at this distance."""
        return (1.0, 1.0, self.factor_cache, self.factor_node)[level]

    def access_ns(self, touched):
        """An access to state by a core that touches that many bytes."""
        return between(self.access, touched)

    def message_ns(self, actors):
        """A message, among that many actors."""
        return between(self.message, actors)

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file, indent=1)
            file.write("\n")

    @classmethod
    def load(cls, data):
        return cls(**data)
