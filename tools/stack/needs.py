"""What a fiber's stack holds besides its functions' frames, and the size that follows."""

import struct
from dataclasses import dataclass

STACK_SIZE_MIN, STACK_SIZE_DEFAULT = 16 * 1024, 256 * 1024  # ramie/stack/pool.hpp
COLOURS = 960  # tops are shifted by up to this much, ramie/stack/slab.hpp
GUARD, GUARD_SMALL, GENEROUS = 16 * 1024, 4 * 1024, 64 * 1024  # ramie/stack/guard.cpp; on pages of 4 KiB
RED_ZONE = 128  # below the stack pointer a function may write without reserving it (x86-64)
HANDLER_BYTES = 1024  # a signal handler's own frames; picked out of thin air
SIGNAL_FRAME = 3376  # what the kernel pushes before it: x86-64 with AVX-512
AT_MINSIGSTKSZ = 51
LOOP = 512  # if the library was not compiled with -fcallgraph-info; 288 with gcc 12 -O3
TURN = 256  # an actor's turn, likewise; 160
WORKER = "ramie::detail::{anonymous}::"


def signal_frame():
    """Of this machine's processor, as the kernel reports it."""
    try:
        with open("/proc/self/auxv", "rb") as file:
            for kind, value in struct.iter_unpack("NN", file.read()):
                if kind == AT_MINSIGSTKSZ:
                    return value
    except (OSError, struct.error):
        pass
    return SIGNAL_FRAME


def loop_bytes(graph):
    """What the scheduler's loop has on the stack when it calls a fiber's function or an actor's."""
    frames = {f.name.partition("(")[0].rpartition("::")[2]: f.frame for f in graph.functions.values()
              if f.known and "loop.cpp:" in f.title and WORKER in f.name}
    if "loop" not in frames and "loop_entry" not in frames:
        return LOOP
    task = frames.get("run_task", 0)
    resident = sum(frames.get(name, 0) for name in ("run_ready_residents", "run_resident", "run_observed"))
    by_loop = frames.get("loop_entry", 0) + frames.get("loop", 0) + max(task, resident)
    return max(by_loop, frames.get("own_stack_entry", 0) + task)


def turn_bytes(graph):
    """What an actor has there, besides the loop, when it calls the handler of a message or a fiber actor's function."""
    frames = {f.name.partition("(")[0].rpartition("::")[2]: f.frame for f in graph.functions.values()
              if f.known and "ramie::detail::actor_cell::" in f.name}
    if "turn" not in frames:
        return TURN
    handled = frames["turn"] + frames.get("whole_turn", 0) + frames.get("handle_burst", 0)
    return max(handled, frames.get("turn_of_fiber", 0))


def guard_of(slot):
    return GUARD if slot >= GENEROUS else GUARD_SMALL


def usable_of(slot):
    """What is left for frames, whatever the shift."""
    return slot - guard_of(slot) - COLOURS


def slot_for(size):
    """The least stack_size that has room for that many bytes."""
    slot = STACK_SIZE_MIN
    while usable_of(slot) < size:
        slot *= 2
    return slot


@dataclass(frozen=True)
class Needs:
    frames: int
    loop: int
    signal: int  # with its handler; 0: handlers have a stack of their own
    red_zone: int = RED_ZONE

    @property
    def total(self):
        return self.frames + self.loop + self.signal + self.red_zone

    @property
    def slot(self):
        return slot_for(self.total)
