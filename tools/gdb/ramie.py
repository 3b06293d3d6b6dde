"""Shows gdb the fibers and actors of a program that uses ramie, live or in a core file.

    (gdb) source ramie.py            (not needed if ramie is installed and gdb may auto-load its script)
    (gdb) ramie fibers               every fiber that has begun: what it waits for, where, since when
    (gdb) ramie bt 3                 its frames; `ramie bt all` those of all
    (gdb) ramie fiber 3              shows fiber 3's frames in the current thread, above frame 0: bt, up, info locals
    (gdb) ramie fiber off            removes them
    (gdb) ramie actors               every actor with its mailbox
    (gdb) ramie workers              the threads and their queues

There are pretty-printers for channels, mutexes and other primitives, handles and references.
The commands need no debugging information of the library: it holds a table of its own layout (ramie_debug_layout). The program's
own information helps, of course, and the printers need it.
"""

import ipaddress
import os
import re
import struct
import time

import gdb
import gdb.printing
import gdb.unwinder

VERSION = 2
WAITS = {0: "running", 1: "begins to wait", 2: "waits", 3: "is being woken"}
RESIDENT = 2  # task_kind
# What `ramie bt` leaves out: the library's part of a wait, and the scheduler below the fiber's function.
INNERMOST = re.compile(r"ramie::detail::|ramie::channel<.*>::recv_with|ramie::channel<.*>::\w+\(.*::\{lambda")
OUTERMOST = re.compile(r"ramie::detail::.*(run_task|run_fork_job|loop|own_stack_entry)\(|ramie_context_start|actor_cell::turn(_of_fiber)?\(")
STACKS_MOST = 10_000_000


class Trouble(gdb.GdbError):
    """An error whose message goes to the user."""


# ---- memory --------------------------------------------------------------------------------------------------------


def read(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def word(address):
    return struct.unpack("<Q", read(address, 8))[0]


def half(address):
    return struct.unpack("<I", read(address, 4))[0]


def signed(address):
    return struct.unpack("<q", read(address, 8))[0]


def text(address, most=200):
    if address == 0:
        return ""
    found = b""
    while len(found) < most and not found.endswith(b"\0"):
        try:
            found += read(address + len(found), 1)
        except gdb.MemoryError:
            break
    return found.rstrip(b"\0").decode("utf-8", "replace")


def string(address):
    """A std::string of libstdc++: pointer, size, ..."""
    size = word(address + 8)
    return read(word(address), min(size, 200)).decode("utf-8", "replace") if size else ""


def view(address):
    """A std::string_view, whichever of its two words comes first."""
    a, b = word(address), word(address + 8)
    size, start = (a, b) if a < b else (b, a)
    return read(start, min(size, 200)).decode("utf-8", "replace") if size else ""


# ---- the library's own tables --------------------------------------------------------------------------------------


def table(symbol):
    try:
        at = int(gdb.parse_and_eval(f"(unsigned long)&{symbol}"))
    except gdb.error:
        return None
    found = {}
    while word(at) != 0:
        found[text(word(at))] = word(at + 8)
        at += 16
    return found


class Layout:
    """By name: an offset, an address or a size."""

    def __init__(self):
        self.values = table("ramie_debug_layout")
        if self.values is None:
            raise Trouble("ramie: this program has no ramie_debug_layout: not ramie, or stripped")
        if not self.values:
            raise Trouble("ramie: no runtime has been started yet")
        if self.values["version"] != VERSION:
            raise Trouble(f"ramie: this script is for another version of ramie ({VERSION}, not {self.values['version']})")
        self.values.update(table("ramie_debug_actors") or {})

    def __getitem__(self, name):
        return self.values[name]

    def __contains__(self, name):
        return name in self.values


class Worker:
    def __init__(self, layout, at, runtime):
        self.at = at
        self.label = f"{runtime[:10]}/{half(at + layout['worker.number'])}"
        self.thread = half(at + layout["worker.thread"])
        self.running = word(at + layout["worker.running"])
        self.idle = read(at + layout["worker.idle"], 1) != b"\0"
        self.on_duty = read(at + layout["worker.on_duty"], 1) != b"\0"
        self.clock = signed(at + layout["worker.clock"])
        queue = at + layout["worker.ready"]
        self.ready = (half(queue + layout["ready_queue.tail"]) - half(queue + layout["ready_queue.head"])) & 0xFFFFFFFF
        deque = at + layout["worker.spawned"]
        self.new = max(0, signed(deque + layout["spawn_deque.bottom"]) - signed(deque + layout["spawn_deque.top"]))
        self.residents = word(at + layout["worker.residents"] + layout["resident_list.newest"])


def workers(layout):
    found = []
    for place in range(layout["schedulers.most"]):
        scheduler = word(layout["schedulers"] + 8 * place)
        if scheduler == 0:
            continue
        name = string(scheduler + layout["scheduler.options"] + layout["options.name"])
        array = word(scheduler + layout["scheduler.workers"])
        for i in range(word(scheduler + layout["scheduler.count"])):
            found.append(Worker(layout, word(array + 8 * i), name))
    return found


class Task:
    """A fiber, a fork job or an actor."""

    def __init__(self, layout, at):
        self.at = at
        self.type = word(at + layout["task.type"])
        self.strand = half(at + layout["task.flags"]) & layout["task.strand_flag"] != 0
        self.parent = word(at + layout["task.parent"])
        self.home = word(at + layout["task.home"])
        self.name = ""
        self.kind = 0 if self.strand else read(self.type + layout["task_type.kind"], 1)[0]
        extras = word(at + layout["task.extras"])
        if extras != 0 and not self.strand:
            self.name = string(extras + layout["extras.name"])
        self.actor = self.kind == RESIDENT and "actor_cell.posted" in layout
        if self.actor:
            self.mail = (half(at + layout["actor_cell.posted"]) - half(at + layout["actor_cell.handled"])) & 0xFFFFFFFF
            self.scheduled = read(at + layout["actor_cell.scheduled"], 1) != b"\0"
            self.status = read(at + layout["actor_cell.status"], 1)[0]
            self.of = view(word(self.type + layout["actor_type.of"]))

    def title(self):
        kind = f"actor {self.of}" if self.actor else "child" if self.strand else "fiber"
        return f'{kind} "{self.name}" {self.at:#x}' if self.name else f"{kind} {self.at:#x}"


def wait_state(word, mark):
    """A key of WAITS; ramie/task/wait_word.hpp has the layout."""
    state = word & 3
    left = mark & ~2 & 0xFFFFFFFF == (word & ~0x3FF & 0xFFFFFFFF) | 1
    return 2 if state == 1 and left else state


class Fiber:
    """What is on a stack."""

    def __init__(self, layout, number, at, occupant, by_stack, now):
        self.number = number
        self.at = at
        self.task = Task(layout, occupant)
        self.sp = word(at + layout["stack.sp"])
        self.fp = word(at + layout["stack.fp"])
        self.pc = word(at + layout["stack.pc"])
        self.worker = by_stack.get(at)
        state = wait_state(half(at + layout["stack.wait_word"]), half(at + layout["stack.parked"]))
        self.parked = state >= 2 and self.worker is None
        self.state = WAITS[state]
        if self.worker is not None:
            self.state = f"runs on {self.worker.label}, thread {self.worker.thread}"
        elif state == 0:
            self.state = "is ready to run"
        elif self.parked:
            self.look_at_wait(layout, now)

    def look_at_wait(self, layout, now):
        wait = word(self.at + layout["stack.waiting"])
        site = word(wait + layout["wait.site"])
        reason = word(site + layout["wait_site.reason"])
        self.state += f" for {text(reason)}"
        plain = read(wait + layout["wait.mode"], 1) == b"\0"
        since = signed(wait + layout["wait.time" if plain else "wait.since"])
        if since and now.known >= since:
            self.state += now.since(since)
        where = word(site + layout["wait_site.where"])
        if where and half(where + 16):
            self.state += f", at {text(word(where), 400)}:{half(where + 16)}"
        if "io_reasons" in layout and layout["io_reasons"] <= reason < layout["io_reasons.end"]:
            what = "writable" if read(site + layout["io_wait_site.writes"], 1) != b"\0" else "readable"
            self.state += f", descriptor {(fd := half(site + layout['io_wait_site.fd']))}{now.peer(fd)}, to be {what}"
        if reason == layout["mutex_reason"]:
            holder = word(word(site + layout["owned_wait_site.owner"]))
            if holder & 1:
                self.state += ", which a plain thread holds"
            elif holder and word(holder + layout["stack.occupant"]):
                self.state += f", which {Task(layout, word(holder + layout['stack.occupant'])).title()} holds"


def endpoint(column):
    """`0100007F:1F90` is 127.0.0.1:8080: words of the machine's order, then the port."""
    words, port = column.split(":")
    packed = b"".join(struct.pack("=I", int(words[i : i + 8], 16)) for i in range(0, len(words), 8))
    return ("{}:{}" if len(packed) == 4 else "[{}]:{}").format(ipaddress.ip_address(packed), int(port, 16))


def sockets(process):
    """Their peers, as the kernel tells; where they are bound if they have none."""
    for table in ("tcp", "tcp6", "udp", "udp6"):
        path = f"{process}/net/{table}"
        for line in list(open(path, encoding="ascii"))[1:] if os.path.exists(path) else ():
            _, own, peer, *_, number = line.split()[:10]
            yield f"socket:[{number}]", f", at {endpoint(own)}" if peer.endswith(":0000") else f", to {endpoint(peer)}"


class Now:
    """For a live process on this machine, the clock that can be read here; otherwise the last time that the workers stored."""

    def __init__(self, all_workers):
        self.known = max((w.clock for w in all_workers), default=0)
        # gdb before 12 has no connections.
        connection = getattr(gdb.selected_inferior(), "connection", None)
        self.live = connection is not None and connection.type == "native"
        if self.live:
            self.known = max(self.known, time.clock_gettime_ns(time.CLOCK_MONOTONIC))
        self.peers = None

    def peer(self, fd):
        process = f"/proc/{gdb.selected_inferior().pid}"
        self.peers = self.peers or (dict(sockets(process)) if self.live else {})
        return self.peers.get(os.readlink(f"{process}/fd/{fd}"), "") if self.peers else ""

    def since(self, then):
        """In words, for a sentence."""
        if self.live:
            return f" ({(self.known - then) / 1e9:.3f} s)"
        passed_ms = (self.known - then) // 1_000_000
        return f" ({passed_ms / 1e3:.3f} s or longer)" if passed_ms > 0 else ""


def fibers(layout):
    """All that have begun and not ended, in the order of their stacks."""
    all_workers = workers(layout)
    by_stack = {w.running: w for w in all_workers if w.running and w.on_duty}
    now = Now(all_workers)
    number = 0
    slab = word(layout["slabs"])
    while slab != 0:
        made = min(half(slab + layout["slab.handed_out"]), STACKS_MOST)
        size = layout["stack.size"]
        descriptors = read(slab + layout["slab.size"], made * size) if made else b""
        for i in range(made):
            occupant = struct.unpack_from("<Q", descriptors, i * size + layout["stack.occupant"])[0]
            if occupant != 0:
                yield Fiber(layout, number, slab + layout["slab.size"] + i * size, occupant, by_stack, now)
                number += 1
        slab = word(slab + layout["slab.next"])


# ---- frames of a fiber that does not run ---------------------------------------------------------------------------


class FrameId:
    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class SwitchTo(gdb.unwinder.Unwinder):
    """Presents a fiber's frames above the current thread's innermost frame. Works on core files, too, whose registers
    cannot be set."""

    def __init__(self):
        super().__init__("ramie fiber")
        self.fiber = None
        self.busy = False

    def __call__(self, frame):
        if self.fiber is None or self.busy or frame.level() != 0:
            return None
        names = ("rsp", "rbp", "rip") if has_register(frame, "rip") else ("sp", "x29", "pc")
        # An address below all stacks: no frame may seem to be below its caller's.
        info = frame.create_unwind_info(FrameId(gdb.Value(64), frame.read_register(names[2])))
        example = [frame.read_register(name) for name in names]
        # Behind the jump that left the fiber; gdb looks one byte before, as it must for calls.
        numbers = (self.fiber.sp, self.fiber.fp, self.fiber.pc + 1)
        for name, like, number in zip(names, example, numbers):
            info.add_saved_register(name, gdb.Value(number).cast(like.type))
        return info


def has_register(frame, name):
    try:
        frame.read_register(name)
        return True
    except (ValueError, gdb.error):
        return False


switch_to = SwitchTo()
gdb.unwinder.register_unwinder(None, switch_to, replace=True)


def select(fiber):
    switch_to.fiber = fiber
    gdb.invalidate_cached_frames()


def frames_of(fiber):
    """One line each, innermost first."""
    if fiber.worker is not None:
        thread = thread_of(fiber.worker.thread)
        if thread is None:
            return ["(its thread is gone)"]
        before = gdb.selected_thread()
        thread.switch()
        try:
            return walk(gdb.newest_frame(), False)
        finally:
            before.switch()
    previous = switch_to.fiber
    select(fiber)
    try:
        return walk(gdb.newest_frame().older(), True)
    finally:
        select(previous)


def walk(frame, parked):
    lines = []
    inside = parked
    while frame is not None and len(lines) < 200:
        name = frame.name() or "??"
        if OUTERMOST.search(name):
            break  # from here on the frames are ramie's own
        if INNERMOST.match(name) and inside:
            frame = frame.older()
            continue
        inside = False
        place = frame.find_sal()
        where = f" at {place.symtab.filename}:{place.line}" if place.symtab else ""
        lines.append(f"{frame.pc():#x} in {name}{where}")
        frame = frame.older()
    return lines


def thread_of(number):
    for thread in gdb.selected_inferior().threads():
        if thread.ptid[1] == number:
            return thread
    return None


# ---- commands ------------------------------------------------------------------------------------------------------


class Ramie(gdb.Command):
    """Fibers and actors: ramie fibers | bt N | fiber N | actors | workers."""

    def __init__(self):
        super().__init__("ramie", gdb.COMMAND_DATA, prefix=True)


class Fibers(gdb.Command):
    """Lists every fiber that has begun and not ended, with what it waits for: ramie fibers."""

    def __init__(self):
        super().__init__("ramie fibers", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        layout = Layout()
        count = 0
        for fiber in fibers(layout):
            chosen = "*" if switch_to.fiber is not None and switch_to.fiber.at == fiber.at else " "
            print(f"{chosen} {fiber.number:<4} {fiber.task.title()}: {fiber.state}")
            count += 1
        if count == 0:
            print("no running or waiting fibers")


class Backtrace(gdb.Command):
    """Prints the frames of a fiber: ramie bt N, or ramie bt all. The numbers are those of `ramie fibers`."""

    def __init__(self):
        super().__init__("ramie bt", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        for fiber in chosen_by(argument):
            print(f"{fiber.number} {fiber.task.title()}: {fiber.state}")
            for i, line in enumerate(frames_of(fiber)):
                print(f"#{i:<3} {line}")


class SelectFiber(gdb.Command):
    """Shows the frames of a fiber above the current thread's innermost frame, for bt, up, down, info locals: ramie fiber N.
ramie fiber off shows the thread's own again. A fiber that runs is shown by its thread."""

    def __init__(self):
        super().__init__("ramie fiber", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        if argument.strip() == "off":
            select(None)
            return
        fiber = next(chosen_by(argument))
        select(None)
        if fiber.worker is not None:
            thread = thread_of(fiber.worker.thread)
            if thread is None:
                raise Trouble("ramie: its thread is gone")
            thread.switch()
        else:
            select(fiber)
            frame = gdb.newest_frame().older()
            while frame is not None and (frame.name() or "").startswith("ramie::"):
                frame = frame.older()
            if frame is not None:
                frame.select()
        gdb.execute("frame")


def chosen_by(argument):
    wanted = argument.strip()
    layout = Layout()
    if wanted == "all":
        yield from list(fibers(layout))
        return
    if not wanted.isdigit():
        raise Trouble("ramie: which fiber? Give its number in `ramie fibers`")
    for fiber in fibers(layout):
        if fiber.number == int(wanted):
            yield fiber
            return
    raise Trouble(f"ramie: there is no fiber {wanted}")


class Actors(gdb.Command):
    """Lists every actor with its mailbox: ramie actors."""

    def __init__(self):
        super().__init__("ramie actors", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        layout = Layout()
        on_stacks = {fiber.task.at: fiber for fiber in fibers(layout)}
        count = 0
        for worker in workers(layout):
            at = worker.residents
            while at != 0:
                task = Task(layout, at)
                if task.actor:
                    count += 1
                    if at in on_stacks:
                        state = on_stacks[at].state
                    else:
                        state = "has ended" if task.status & 1 else "is ready" if task.scheduled else "is idle"
                    print(f"  {task.title()}: {task.mail} messages, {state}")
                at = word(at + layout["resident.older"])
        if count == 0:
            print("there are no actors")


class Workers(gdb.Command):
    """Lists the workers with their threads and queues: ramie workers."""

    def __init__(self):
        super().__init__("ramie workers", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        layout = Layout()
        for w in workers(layout):
            if not w.on_duty:
                continue
            occupant = word(w.running + layout["stack.occupant"]) if w.running else 0
            doing = "sleeps" if w.idle else f"runs {Task(layout, occupant).title()}" if occupant else "looks for work"
            print(f"  {w.label}, thread {w.thread}: {doing}; {w.ready} ready, {w.new} new")


# ---- printers ------------------------------------------------------------------------------------------------------


def number_in(value):
    """The number in an atomic, or in another object of that size."""
    return int.from_bytes(read(int(value.address), value.type.sizeof), "little")


class Printer:
    def __init__(self, value):
        self.value = value


class MutexPrinter(Printer):
    def to_string(self):
        owner = number_in(self.value["owner_"])
        if owner == 0:
            return "free"
        if owner & 1:
            return "held by a plain thread"
        layout = Layout()
        occupant = word(owner + layout["stack.occupant"])
        return f"held by {Task(layout, occupant).title()}" if occupant else "held"


class ChannelPrinter(Printer):
    @staticmethod
    def tally(count):
        """The lower half; the upper one says how often it was increased."""
        return number_in(count["both_"]) & 0xFFFFFFFF

    def to_string(self):
        core = self.value["core_"]
        said = f"{self.tally(core['size'])} of {int(core['capacity'])} places taken"
        for line in ("receivers", "senders"):
            waiting = self.tally(core[line]["count_"])
            if waiting:
                said += f", {waiting} {line} wait"
        return said + (", closed" if number_in(core["closed"]) else "")


class CountPrinter(Printer):
    """Primitives whose state is one number in a word with a lock bit."""

    def to_string(self):
        return f"{number_in(self.value['queue_']['word_']) >> 1}"


class EventPrinter(Printer):
    def to_string(self):
        return "set" if number_in(self.value["queue_"]["word_"]) >> 1 else "not set"


class ActorPrinter(Printer):
    def to_string(self):
        cell = int(self.value["cell_"])
        if cell == 0:
            return "no actor"
        task = Task(Layout(), cell)
        return f"{task.title()}, {task.mail} messages" if task.actor else task.title()


class HandlePrinter(Printer):
    def to_string(self):
        at = int(self.value["task_"])
        if at == 0:
            return "no fiber"
        layout = Layout()
        done = word(at + layout["task.completion"]) == 2
        return Task(layout, at).title() + (", has ended" if done else "")


class IdPrinter(Printer):
    def to_string(self):
        return f"{int(self.value['address_']):#x}"


PRINTERS = {
    "mutex": ("^ramie::(mutex|timed_mutex)$", MutexPrinter),
    "channel": ("^ramie::channel<.*>$", ChannelPrinter),
    "count": ("^ramie::(latch|wait_group|counting_semaphore<.*>)$", CountPrinter),
    "event": ("^ramie::event$", EventPrinter),
    "actor": ("^ramie::(any_actor|actor_ref<.*>)$", ActorPrinter),
    "join_handle": ("^ramie::join_handle<.*>$", HandlePrinter),
    "fiber_id": ("^ramie::fiber_id$", IdPrinter),
}


def register_printers():
    printers = gdb.printing.RegexpCollectionPrettyPrinter("ramie")
    for name, (pattern, printer) in PRINTERS.items():
        printers.add_printer(name, pattern, printer)
    gdb.printing.register_pretty_printer(None, printers, replace=True)


for command in (Ramie, Fibers, Backtrace, SelectFiber, Actors, Workers):
    command()
register_printers()
