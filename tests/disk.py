"""A disk that remembers every operation on it, so that each moment at which a process or the power can go is rebuilt.

`recorded(root)` notes what the code under test does below a directory through `os`: creations, writes, truncations, syncs,
renames and removals, in order. `crashes(log)` gives the trees that may be found after a stop before, in the middle of and after each:

    killed       all that was done is there; of the last write a part
    power gone   of what was written since a file's last sync nothing is there, or zeros; of the names that were changed since a
                 directory's last sync none is there, or the first few, or only those of some directories
"""

import os
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest


class Op(NamedTuple):
    """One operation: what, on which node (of a creation: its own), and with what."""

    kind: str
    node: int = 0
    path: str = ""  # from the root
    data: object = None


NAMES = ("mkdir", "create", "rename", "unlink", "rmdir")
"""Operations on names, which a sync of their directory makes last."""


class Tree:
    """Directories as dicts of nodes, files as bytes; node 0 is the root."""

    def __init__(self):
        self.inside, self.content = {0: {}}, {}

    def find(self, path):
        """The node of a path, or None."""
        node = 0
        for part in Path(path).parts:
            if node not in self.inside or part not in self.inside[node]:
                return None
            node = self.inside[node][part]
        return node

    def parent(self, path):
        return self.find(Path(path).parent)

    def apply(self, op):
        """Do it; what rests on something that is not there is left out."""
        if op.kind in ("mkdir", "create"):
            parent = self.parent(op.path)
            if parent in self.inside and Path(op.path).name not in self.inside[parent]:
                self.inside[parent][Path(op.path).name] = op.node
                if op.kind == "mkdir":
                    self.inside[op.node] = {}
                else:
                    self.content[op.node] = b""
        elif op.kind == "write" and op.node in self.content:
            begin, data = op.data
            old = self.content[op.node].ljust(begin, b"\0")
            self.content[op.node] = old[:begin] + data + old[begin + len(data) :]
        elif op.kind == "truncate" and op.node in self.content:
            self.content[op.node] = self.content[op.node][: op.data].ljust(op.data, b"\0")
        elif op.kind == "rename":
            node, parent, to = self.find(op.path), self.parent(op.path), self.parent(op.data)
            if node is not None and to in self.inside:
                del self.inside[parent][Path(op.path).name]
                self.inside[to][Path(op.data).name] = node
        elif op.kind in ("unlink", "rmdir") and self.find(op.path) is not None:
            del self.inside[self.parent(op.path)][Path(op.path).name]

    def files(self, node=0, at=""):
        """Every path with its bytes; a directory with None."""
        for name, inner in sorted(self.inside[node].items()):
            path = f"{at}{name}"
            yield path, self.content.get(inner)
            if inner in self.inside:
                yield from self.files(inner, f"{path}/")

    def build(self, root):
        """Make the tree on a real disk."""
        for path, data in self.files():
            if data is None:
                (root / path).mkdir()
            else:
                (root / path).write_bytes(data)


class Log:
    """The operations so far, and marks between them."""

    def __init__(self):
        self.ops, self.marks, self.live, self.nodes, self.start = [], [], Tree(), 0, 0

    def add(self, kind, node=0, path="", data=None):
        op = Op(kind, node, path, data)
        self.ops.append(op)
        self.live.apply(op)

    def mark(self, what):
        """Note that something has been done by now."""
        self.marks.append((len(self.ops), what))

    def begin(self):
        """Crashes from here on are of interest."""
        self.start = len(self.ops)

    def at(self, number, default=None):
        """The last mark before an operation."""
        return next((what for index, what in reversed(self.marks) if index <= number), default)

    def next_after(self, number):
        """The first mark after an operation."""
        return next((what for index, what in self.marks if index > number), None)


@contextmanager
def recorded(root):
    """Note every operation below `root`, which is empty."""
    log, handles, root = Log(), {}, Path(root).resolve()
    real = {name: getattr(os, name) for name in ("open", "close", "write", "fsync", "ftruncate", "mkdir", "rename", "replace", "unlink", "remove", "rmdir")}  # fmt: skip

    def inner(path, dir_fd=None):
        """A path from the root, or None if it is not below it."""
        whole = Path(handles[dir_fd][1], path) if dir_fd in handles else Path(os.path.abspath(path))
        if dir_fd in handles:
            return str(whole)
        return str(whole.relative_to(root)) if whole.is_relative_to(root) else None

    def opened(path, flags, mode=0o777, *, dir_fd=None):
        where = None if isinstance(path, int) else inner(path, dir_fd)
        handle = real["open"](path, flags, mode, **({} if dir_fd is None else {"dir_fd": dir_fd}))
        if where is not None:
            node = log.live.find(where)
            if node is None:
                log.nodes += 1
                node = log.nodes
                log.add("create", node, where)
            if flags & os.O_TRUNC:
                log.add("truncate", node, where, 0)
            handles[handle] = node, where, bool(flags & os.O_APPEND), [0]
        return handle

    def closed(handle):
        handles.pop(handle, None)
        return real["close"](handle)

    def wrote(handle, data):
        written = real["write"](handle, data)
        if handle in handles:
            node, where, append, place = handles[handle]
            begin = len(log.live.content[node]) if append else place[0]
            log.add("write", node, where, (begin, bytes(data[:written])))
            place[0] = begin + written
        return written

    def synced(handle):
        real["fsync"](handle)
        if handle in handles:
            log.add("sync", *handles[handle][:2])

    def cut(handle, size):
        real["ftruncate"](handle, size)
        if handle in handles and len(log.live.content[handles[handle][0]]) != size:
            log.add("truncate", *handles[handle][:2], size)

    def changed(kind, name):
        def call(path, *more, **given):
            where = inner(path, given.get("dir_fd"))
            real[name](path, *more, **given)
            if where is not None:
                if kind == "mkdir":
                    log.nodes += 1
                log.add(kind, log.nodes if kind == "mkdir" else 0, where, inner(more[0]) if kind == "rename" else None)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name, call in {"open": opened, "close": closed, "write": wrote, "fsync": synced, "ftruncate": cut}.items():
            patch.setattr(os, name, call)
        for kind, name in (("mkdir", "mkdir"), ("rename", "rename"), ("rename", "replace"), ("unlink", "unlink"), ("unlink", "remove"), ("rmdir", "rmdir")):  # fmt: skip
            patch.setattr(os, name, changed(kind, name))
        yield log


def built(ops):
    """The tree that operations leave."""
    tree = Tree()
    for op in ops:
        tree.apply(op)
    return tree


def directories_of(op):
    """The directories whose names an operation changes."""
    return {str(Path(path).parent) for path in (op.path, op.data if op.kind == "rename" else op.path)}


def lasting(ops):
    """Of operations on names, those that a later sync of one of their directories has made last."""
    kept, synced = set(), set()
    for index in range(len(ops) - 1, -1, -1):
        op = ops[index]
        if op.kind == "sync":
            synced.add(op.path)
        elif op.kind in NAMES and directories_of(op) & synced:
            kept.add(index)
    return kept


def implied(ops, lost):
    """Without those operations that others which are not lost rest on: what was renamed was made, and is where it was put last."""
    lost = set(lost)
    for index in range(len(ops) - 1, -1, -1):
        if ops[index].kind == "rename" and index not in lost:
            source = ops[index].path
            made = (
                i for i in range(index - 1, -1, -1) if source in (ops[i].data, ops[i].path) and ops[i].kind in NAMES
            )
            lost.discard(next((i for i in made if ops[i].data == source or ops[i].kind in ("mkdir", "create")), None))
    return lost


def without_power(ops):
    """The lists of operations that may be on the disk after the power has gone."""
    last = {op.node: index for index, op in enumerate(ops) if op.kind == "sync"}
    loose_data = {i for i, op in enumerate(ops) if op.kind in ("write", "truncate") and last.get(op.node, -1) < i}
    names = [i for i, op in enumerate(ops) if op.kind in NAMES]
    kept = lasting(ops)
    loose = [i for i in names if i not in kept]
    places = sorted({place for i in loose for place in directories_of(ops[i])})
    lost_names = [set(), *[set(loose[first:]) for first in range(len(loose))]]
    lost_names += [{i for i in loose if place in directories_of(ops[i])} for place in places]
    lost_names += [{i for i in loose if place not in directories_of(ops[i])} for place in places]
    for lost in (implied(ops, lost) for lost in lost_names):
        yield [op for i, op in enumerate(ops) if i not in lost and i not in loose_data]
        yield [zeroed(op) if i in loose_data else op for i, op in enumerate(ops) if i not in lost]


def zeroed(op):
    """A write of which only the size has reached the disk."""
    return op._replace(data=(op.data[0], bytes(len(op.data[1])))) if op.kind == "write" else op


def crashes(log):
    """Every tree that a crash may leave, once per number of operations done: (number, kind, tree)."""
    for number in range(log.start, len(log.ops) + 1):
        seen = set()
        done = log.ops[:number]
        found = [("killed", built(done))]
        if number < len(log.ops) and log.ops[number].kind == "write":
            begin, data = log.ops[number].data
            for size in {1, len(data) // 2, len(data) - 1} - {0, len(data)}:
                found.append(("torn", built([*done, log.ops[number]._replace(data=(begin, data[:size]))])))
        found += [("power gone", built(ops)) for ops in without_power(done)]
        for kind, tree in found:
            shape = tuple(tree.files())
            if shape not in seen:
                seen.add(shape)
                yield number, kind, tree
