"""The scheduler as a queue of events: workers, their queues, thefts, sleep and wake-ups.

One event is "worker w has finished a piece of work". It then publishes the results, and takes the next piece of
work: its ready queue, its new tasks, its inbox, the common queue, others' queues. The cost of a piece of work is up to its
kind to say (programs.py), which knows where it ran last. Only victims and partners are random, from a seed.
"""

import heapq
import random
from collections import deque


BUSY, SEARCHING, ASLEEP, WAKING = range(4)
STEAL_MOST = 128  # ready_queue::steal_most


class Worker:
    __slots__ = ("number", "ready", "spawned", "inbox", "state", "since", "running", "rings", "robbed_until", "busy",
                 "turn", "until")

    def __init__(self, number, rings):
        self.number = number
        self.ready = deque()
        self.spawned = deque()
        self.inbox = deque()
        self.state = ASLEEP
        self.since = 0.0
        self.running = None
        self.rings = rings
        self.robbed_until = 0.0
        self.busy = 0.0
        self.turn = 0
        self.until = 0.0  # while it searches


class Policy:
    """The differences between the placements. `home`: woken work goes to where it ran last, if that worker is awake."""

    def __init__(self, name, steals=True, shared=False, dealt=False, fixed=False, home=False, together=False):
        self.name = name
        self.steals = steals
        self.shared = shared
        self.dealt = dealt
        self.fixed = fixed
        self.home = home
        self.together = together


# work_stealing tries, at run time, which of these is better, and keeps it (spread.hpp).
SPREAD = Policy("spread")
SPREAD_HOME = Policy("spread, at home", home=True)
TOGETHER = Policy("together", together=True)
VARIANTS = {
    "work_stealing": (SPREAD, SPREAD_HOME, TOGETHER),
    "stealing_no_affinity": (SPREAD, TOGETHER),
    "shared_queue": (Policy("shared_queue", shared=True),),
    "round_robin": (Policy("round_robin", steals=False, dealt=True),),
    "dedicated": (Policy("dedicated", steals=False, dealt=True, fixed=True),),
}


class Simulation:
    """Runs `program` until it reports its end; `now` is the time then."""

    def __init__(self, costs, machine, policy, program, seed=1):
        self.costs = costs
        self.machine = machine
        self.policy = policy
        self.program = program
        self.random = random.Random(seed)
        self.events = []
        self.sequence = 0
        self.now = 0.0
        self.searching = 0
        self.common = deque()
        self.lock_free = 0.0  # the common queue's lock
        self.lock_last = None
        self.steals = self.wakes = self.moves = 0
        self.robbed = False
        self.workers = [Worker(n, machine.rings(n)) for n in range(machine.cores)]
        self.sleepers = list(reversed(self.workers))
        self.program.start(self)
        if program.warm:
            for worker in self.sleepers:
                worker.state = BUSY
                self.schedule(0.0, worker, self.take_up)
            self.sleepers = []
        while self.events and not self.program.over:
            self.now, _, worker, what = heapq.heappop(self.events)
            what(worker)
        if not self.program.over:
            raise RuntimeError(f"{policy.name}: nothing is left to do, and the program is not over")

    # -- for programs --------------------------------------------------------------------------------------------------

    def begin(self, number, work):
        """Puts work into a worker's ready queue before the start."""
        worker = self.workers[number]
        worker.ready.append(work)
        if worker.state == ASLEEP:
            self.sleepers.remove(worker)
            self.take_up(worker)

    def spawn(self, worker, work):
        """A new task, made by the work on `worker`."""
        if self.policy.shared:
            self.to_common(worker, work)
        elif self.policy.dealt:
            # It is not known elsewhere yet, and only the inbox is shared.
            self.send(worker, self.next_in_turn(worker), work, self.costs.touch)
        else:
            worker.spawned.append(work)
            if len(worker.spawned) >= 2:
                self.offer(worker)

    def ready(self, worker, work):
        """Wakes work that ran before; `worker` is the waker."""
        policy = self.policy
        if policy.shared:
            return self.to_common(worker, work)
        home = work.home
        if policy.fixed:
            return self.send(worker, home, work)
        if policy.dealt:
            return self.send(worker, self.next_in_turn(worker), work)
        if policy.home and home is not None and home is not worker and home.state != ASLEEP:
            return self.send(worker, home, work)
        if home is not worker:
            self.moves += 1
        worker.ready.append(work)
        if policy.steals and not policy.together and len(worker.ready) >= 2:
            self.offer(worker)

    def again(self, worker, work):
        """Requeues work behind others of the same worker."""
        if self.policy.shared:
            self.to_common(worker, work)
        elif self.policy.dealt and not self.policy.fixed:
            self.send(worker, self.next_in_turn(worker), work)
        else:
            worker.ready.append(work)
            if self.policy.steals and not self.policy.together and len(worker.ready) >= 2:
                self.offer(worker)

    def distance(self, to, origin):
        """The factor for what `to` takes from `origin`; 0 if that is itself, or none."""
        if origin is None or origin is to:
            return 0.0
        return self.costs.factor(self.machine.level(to.number, origin.number))

    def charge(self, worker, ns):
        """`worker` spends time on publishing: it finishes that much later."""
        worker.since += ns
        worker.busy += ns

    # -- queues --------------------------------------------------------------------------------------------------------

    def next_in_turn(self, worker):
        worker.turn += 1
        return self.workers[(worker.number + worker.turn) % len(self.workers)]

    def send(self, sender, to, work, cost=None):
        if to is sender:
            sender.ready.append(work)
            return
        self.moves += work.home is not None and work.home is not to
        half = (self.costs.send if cost is None else cost) / 2 * self.distance(to, sender)
        self.charge(sender, half)
        to.inbox.append((work, half))
        self.rouse(sender, to)

    def to_common(self, worker, work):
        self.pass_lock(worker)
        self.common.append(work)
        if self.searching == 0 and self.sleepers:
            self.wake_one(worker)
        elif self.searching:
            self.notice_one(worker)

    def pass_lock(self, worker):
        """The common queue's lock: serialised, and dearer if another worker had it."""
        held = self.costs.lock_pass * self.distance(worker, self.lock_last)
        begin = max(worker.since, self.lock_free)
        self.lock_free = begin + held
        self.lock_last = worker
        self.charge(worker, begin + held - worker.since)

    # -- idle workers --------------------------------------------------------------------------------------------------

    def schedule(self, at, worker, what):
        self.sequence += 1
        heapq.heappush(self.events, (at, self.sequence, worker, what))

    def offer(self, worker):
        """`worker` has more than it can do at once."""
        if self.searching:
            self.notice_one(worker)
        elif self.sleepers:
            self.wake_one(worker)

    def notice_one(self, worker):
        """A searcher finds the work: it looks all the time."""
        for other in self.workers:
            if other.state == SEARCHING and other is not worker:
                self.found_by(other, worker.since + self.costs.notice)
                return

    def found_by(self, searcher, at):
        # It counts as searching until it has what it found.
        searcher.state = WAKING
        searcher.since = at
        self.schedule(at, searcher, self.take_up)

    def wake_one(self, worker):
        self.wakes += 1
        self.charge(worker, self.costs.wake_call)
        sleeper = self.sleepers.pop()
        sleeper.state = WAKING  # as a searcher: no other is woken until it has found something
        self.searching += 1
        self.schedule(worker.since + self.costs.wake, sleeper, self.take_up)

    def rouse(self, sender, to):
        if to.state == SEARCHING:
            self.found_by(to, sender.since + self.costs.notice * self.distance(to, sender))
        elif to.state == ASLEEP:
            self.wakes += 1
            self.charge(sender, self.costs.wake_call)
            self.sleepers.remove(to)
            to.state = BUSY
            self.schedule(sender.since + self.costs.wake, to, self.take_up)

    def give_up(self, worker):
        """A search has found nothing."""
        if worker.state != SEARCHING or self.now < worker.until:
            return
        if self.work_in_sight(worker):  # the last look before it sleeps
            worker.state = WAKING
            self.take_up(worker)
            return
        worker.state = ASLEEP
        self.searching -= 1
        self.sleepers.append(worker)

    def look_again(self, worker):
        if worker.state == SEARCHING:
            worker.state = WAKING
            self.take_up(worker)

    # -- what a worker does --------------------------------------------------------------------------------------------

    def take_up(self, worker):
        worker.since = self.now
        was_waking = worker.state == WAKING
        if was_waking:
            self.searching -= 1
        worker.state = BUSY
        if worker.inbox:
            for work, cost in worker.inbox:
                self.charge(worker, cost)
                worker.ready.append(work)
            worker.inbox.clear()
        if worker.ready:
            work = worker.ready.popleft()
        elif worker.spawned:
            work = worker.spawned.pop()
        elif self.common:
            self.pass_lock(worker)
            work = self.common.popleft()
        else:
            work = self.steal(worker) if self.policy.steals else None
        if work is None:
            if 2 * self.searching >= len(self.workers) and self.searching:
                worker.state = ASLEEP
                self.sleepers.append(worker)
                return
            worker.state = SEARCHING
            self.searching += 1
            if not was_waking or self.now >= worker.until:
                worker.until = worker.since + self.costs.search
                self.schedule(worker.until, worker, self.give_up)
            if self.robbed:  # there is work, but another thief is at it
                self.schedule(worker.since + max(self.costs.steal, 1.0), worker, self.look_again)
            return
        if was_waking and self.searching == 0 and self.sleepers and self.work_in_sight(worker):
            self.wake_one(worker)
        worker.running = work
        cost = self.program.run(self, worker, work)
        worker.busy += cost
        self.schedule(worker.since + cost, worker, self.through)

    def through(self, worker):
        worker.since = self.now
        work = worker.running
        work.home = worker
        self.program.done(self, worker, work)
        if worker.since > self.now:
            self.schedule(worker.since, worker, self.take_up)
        else:
            self.take_up(worker)

    def work_in_sight(self, worker):
        if self.common:
            return True
        if not self.policy.steals:
            return False
        return any(len(w.spawned) >= 2 or (len(w.ready) >= 2 and not self.policy.together) for w in self.workers)

    def steal(self, worker):
        self.robbed = False
        for ring in worker.rings:
            first = self.random.randrange(len(ring))
            for i in range(len(ring)):
                victim = self.workers[ring[(first + i) % len(ring)]]
                if victim.robbed_until > self.now:
                    self.robbed |= len(victim.spawned) >= 2
                    continue
                if len(victim.spawned) >= 2 or (victim.spawned and victim.running is not None):
                    loot = [victim.spawned.popleft() for _ in range(min((len(victim.spawned) + 1) // 2, STEAL_MOST))]
                    worker.spawned.extend(reversed(loot[1:]))
                elif len(victim.ready) >= 2 and not self.policy.together:
                    loot = [victim.ready.popleft() for _ in range(min((len(victim.ready) + 1) // 2, STEAL_MOST))]
                    worker.ready.extend(loot[1:])
                    self.moves += len(loot)
                else:
                    continue
                cost = self.costs.steal * max(1.0, self.distance(worker, victim))
                victim.robbed_until = self.now + cost
                self.charge(worker, cost)
                self.steals += 1
                return loot[0]
        return None
