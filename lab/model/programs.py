"""The five experiments, as pieces of work that the engine runs. Each defines the cost of a piece where it runs, and what
follows from it. They are smaller than the originals, by a factor that `units` tells; the figures are a unit's."""

BURST = 64  # messages that an actor handles before others may run (actor/cell.hpp)
CHUNK = 64  # fibers that the spawner of experiment 4 makes in one event


class Work:
    """A piece of work: `home` is the last worker that ran it, `maker` the one that made it."""

    __slots__ = ("home", "maker", "size", "kind", "mail", "queued", "cell", "owners", "next")

    def __init__(self, maker=None, size=0, kind=0):
        self.home = None
        self.maker = maker
        self.size = size
        self.kind = kind
        self.mail = 0
        self.queued = False
        self.cell = None  # the worker that had its control part last
        self.owners = {}  # of its state: worker -> share of its lines
        self.next = None


class Program:
    over = False
    units = 1
    warm = False  # runs so long that the time until all workers are awake does not matter

    def common_extra(self, sim):
        """A turn through the common queue costs this much more than through one's own, when uncontended."""
        return max(0.0, sim.costs.message_shared - sim.costs.message_ns(24)) if sim.policy.shared else 0.0


class Tree(Program):
    """Experiments 1 and 2: `ways` children a node, down to the leaves. Below `grain` nodes a subtree is one piece of
    work: thieves do not reach its inside, as they take the oldest, which is the largest."""

    def __init__(self, nodes, ways, node_ns, grain):
        self.units = self.left = nodes
        self.ways = ways
        self.node_ns = node_ns
        self.grain = grain

    def start(self, sim):
        sim.begin(0, Work(size=self.units))

    def nodes_in(self, task):
        return task.size if task.size <= self.grain else 1

    def run(self, sim, worker, task):
        nodes = self.nodes_in(task)
        # A result goes to its waiter, by the waiter's control part.
        away = sim.distance(worker, task.maker) * sim.costs.touch
        return nodes * self.node_ns + away

    def done(self, sim, worker, task):
        self.left -= self.nodes_in(task)
        self.over = self.left <= 0
        if task.size <= self.grain:
            return
        rest = task.size - 1
        for i in range(self.ways):
            size = rest // (self.ways - i)
            rest -= size
            if size:
                sim.spawn(worker, Work(maker=worker, size=size))


class Actors(Program):
    """Experiment 5: `lines` messages in flight among actors of `state` bytes; each handled one makes `accesses` at
    random, and then the actor tells itself, a random one, or the next of a ring."""

    warm = True

    def __init__(self, actors, state, accesses, lines, count, way="self", ring=0, message_ns=None):
        self.n, self.state, self.accesses, self.lines = actors, state, accesses, lines
        self.way = way
        self.ring = ring
        self.units = self.left = count
        self.message_ns = message_ns
        self.state_lines = max(1, state // 64)

    def start(self, sim):
        self.resident = {w: 0.0 for w in sim.workers}
        self.message = self.message_ns
        if self.message is None:
            here = self.n / len(sim.workers) if sim.policy.fixed else self.n
            self.message = sim.costs.self_message if self.way == "self" else sim.costs.message_ns(here)
        self.actors = [Work() for _ in range(self.n)]
        for i, actor in enumerate(self.actors):
            actor.home = sim.workers[i % len(sim.workers)] if sim.policy.dealt else sim.workers[0]
            actor.next = self.actors[(i // self.ring) * self.ring + (i + 1) % self.ring] if self.ring else None
        for i in range(self.lines):
            actor = self.actors[i * self.ring if self.ring else i % self.n]
            actor.mail += 1
            if not actor.queued:
                actor.queued = True
                sim.begin(actor.home.number, actor)

    def run(self, sim, worker, actor):
        costs = sim.costs
        # An actor that tells itself finds the message in the same turn.
        actor.size = min(BURST, self.left) if self.way == "self" else min(BURST, actor.mail)
        ns = actor.size * self.message + self.common_extra(sim) + costs.touch * sim.distance(worker, actor.cell)
        actor.cell = worker
        if self.accesses:
            ns += self.touch_state(sim, worker, actor, actor.size * self.accesses)
        return ns

    def touch_state(self, sim, worker, actor, accesses):
        costs, owners = sim.costs, actor.owners
        touched = 1 - (1 - 1 / self.state_lines) ** accesses
        ns = 0.0
        for owner, share in list(owners.items()):
            if owner is worker:
                continue
            # Lines that the other core has evicted are not dearer than this core's own.
            kept = min(1.0, costs.private_bytes / max(1.0, self.resident[owner]))
            ns += self.state_lines * touched * share * kept * costs.line * sim.distance(worker, owner)
            self.resident[owner] -= touched * share * self.state
            if share * (1 - touched) < 0.01:
                del owners[owner]
            else:
                owners[owner] = share * (1 - touched)
        mine = 1.0 - sum(share for owner, share in owners.items() if owner is not worker)
        self.resident[worker] += (mine - owners.get(worker, 0.0)) * self.state
        owners[worker] = mine
        # The first access to a line in this turn finds it where the worker's whole state is, the others in a near cache.
        first = min(accesses, self.state_lines * touched)
        return (ns + first * costs.access_ns(self.resident[worker])
                + (accesses - first) * costs.access_ns(min(self.state, 64 * first)))

    def done(self, sim, worker, actor):
        handled = actor.size
        self.left -= handled
        if self.left <= 0:
            self.over = True
            return
        if self.way == "self":
            sim.again(worker, actor)
        else:
            self.pass_on(sim, worker, actor)

    def pass_on(self, sim, worker, actor):
        actor.mail -= actor.size
        for _ in range(actor.size):
            target = actor.next if self.ring else self.actors[sim.random.randrange(self.n)]
            sim.charge(worker, sim.costs.touch * sim.distance(worker, target.cell))
            target.cell = worker
            target.mail += 1
            if not target.queued:
                target.queued = True
                sim.ready(worker, target)
        if actor.mail:
            sim.again(worker, actor)
        else:
            actor.queued = False


class Mixed(Actors):
    """Experiment 3: tokens go round in rings; for each of `repetitions` of a ring a factorisation runs alongside.
    Shortened: a message stands for `scale` of the original, and a factorisation is shorter by as much."""

    def __init__(self, costs, rings, ring, token, repetitions, hops, factorise=True):
        super().__init__(rings * ring, 8, 0, rings, rings * hops * repetitions, "ring", ring, costs.ring_message)
        self.scale = (token + 1) * ring / hops
        self.real_units = self.units * self.scale
        self.factor_ns = costs.factorisation / self.scale
        self.factors = rings * repetitions if factorise else 0
        self.factorise = factorise
        self.hops = hops
        self.left_of = [hops * repetitions] * rings

    def start(self, sim):
        super().start(sim)
        self.ring_of = {id(actor): i // self.ring for i, actor in enumerate(self.actors)}
        for r in range(self.lines if self.factorise else 0):
            task = Work(kind=1)
            task.home = self.actors[r * self.ring].home
            sim.begin(task.home.number, task)

    def run(self, sim, worker, work):
        return self.factor_ns if work.kind == 1 else super().run(sim, worker, work)

    def done(self, sim, worker, work):
        if work.kind == 1:
            self.factors -= 1
        else:
            r = self.ring_of[id(work)]
            self.left -= work.size
            self.left_of[r] -= work.size
            if self.left_of[r] > 0:
                if self.factorise and self.left_of[r] % self.hops == 0:
                    sim.spawn(worker, Work(maker=worker, kind=1))
                self.pass_on(sim, worker, work)
        self.over = self.left <= 0 and self.factors <= 0


class Overhead(Program):
    """Experiment 4: one fiber spawns `x` others, which take `n` square roots each, and send a result to it."""

    def __init__(self, costs, x, n):
        self.units = self.left = x
        self.to_spawn = x
        self.spawn_ns = costs.fiber_small / 2
        self.run_ns = costs.fiber_small - self.spawn_ns + n * costs.root
        self.channel_free = 0.0
        self.channel_last = None

    def start(self, sim):
        sim.begin(0, Work(kind=1))

    def run(self, sim, worker, work):
        if work.kind == 1:
            return min(CHUNK, self.to_spawn) * self.spawn_ns
        # The result goes through one channel, serialised.
        begin = max(sim.now + self.run_ns, self.channel_free)
        self.channel_free = begin + sim.costs.channel_pass * sim.distance(worker, self.channel_last)
        self.channel_last = worker
        return self.channel_free - sim.now + self.common_extra(sim)

    def done(self, sim, worker, work):
        if work.kind == 1:
            made = min(CHUNK, self.to_spawn)
            self.to_spawn -= made
            for _ in range(made):
                sim.spawn(worker, Work(maker=worker))
            if self.to_spawn:
                worker.ready.appendleft(work)  # continues: it does not wait
            return
        self.left -= 1
        self.over = self.left <= 0
