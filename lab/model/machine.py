"""A modelled machine: cores, the caches they share, and their nodes."""

from dataclasses import dataclass

SAME_CORE, SAME_CACHE, SAME_NODE, OTHER_NODE = range(4)


@dataclass(frozen=True)
class Machine:
    """`cores` workers, one a core; `cores_a_cache` of them share a last-level cache, and `cores_a_node` a node."""

    cores: int
    cores_a_cache: int = 0  # 0: all
    cores_a_node: int = 0  # 0: all

    def level(self, a, b):
        """How far core `a` is from core `b`."""
        if a == b:
            return SAME_CORE
        if self.cores_a_node and a // self.cores_a_node != b // self.cores_a_node:
            return OTHER_NODE
        if self.cores_a_cache and a // self.cores_a_cache != b // self.cores_a_cache:
            return SAME_NODE
        return SAME_CACHE

    def rings(self, worker):
        """The other cores, nearest first: lists of equally distant ones."""
        found = {}
        for other in range(self.cores):
            if other != worker:
                found.setdefault(self.level(worker, other), []).append(other)
        return [found[level] for level in sorted(found)]
