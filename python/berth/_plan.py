"""Plans, and the packer alone."""

from __future__ import annotations

import os
from typing import Any, Iterable, NamedTuple, Optional, Sequence, Tuple, Union

from . import _berth

PathLike = Union[str, "os.PathLike[str]"]
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def bytes_of(size: Union[int, str, None]) -> int:
    """A number of bytes: an int, or text like "64M" or "1GiB" (powers of 1024, as on the command line). None: 0."""
    if size is None:
        return 0
    if isinstance(size, int):
        if size < 0:
            raise _berth.InvalidArgument(f"a number of bytes is not negative: {size}")
        return size
    text = str(size).strip().upper()
    for ending in ("IB", "B"):
        if text.endswith(ending):
            text = text[: -len(ending)]
            break
    unit = text[-1:] if text[-1:] in _UNITS and not text[-1:].isdigit() else ""
    digits = text[: len(text) - len(unit)]
    if not digits.isdigit():
        raise _berth.InvalidArgument(f"'{size}' is not a number of bytes; write 67108864 or 64M")
    return int(digits) * _UNITS[unit]


def _write(path: PathLike, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _kind_of(path: PathLike) -> str:
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending not in (".svg", ".html"):
        raise _berth.InvalidArgument(f"a picture is written to a file that ends in .svg or .html, not '{os.fspath(path)}'")
    return ending[1:]


class Plan:
    """Where and when every value of a graph lives: one block of memory, known to the byte before anything runs.

    ``graph.plan(...)`` makes one; ``session.plan`` is the one that a session has at the moment. In a notebook a plan
    draws itself.

    >>> plan = load("examples/digits/digits.berth").plan({"batch": 1}, threads=1)
    >>> plan.arena_size < plan.info()["total_unshared"]
    True
    """

    def __init__(self, handle: _berth.PlanHandle) -> None:
        self._handle = handle

    @property
    def arena_size(self) -> int:
        """Bytes of the one block: weights, states, activations and scratch."""
        return self._handle.arena_size

    def info(self) -> "dict[str, Any]":
        """Sizes and counts: arena_size, weights_size, activations_size, activations_lower_bound, scratch_size,
        state_size, total_unshared, saved, optimal, order_optimal, n_values, n_buffers, n_steps and so on."""
        return self._handle.info()

    def report(self, kind: str = "text") -> str:
        """The plan as text: 'text' is a table, 'csv' is MiniMalloc's format, 'svg' and 'html' are pictures."""
        return self._handle.report(kind)

    def picture(self, path: PathLike) -> None:
        """Draws the plan into a file: .svg, or .html with zoom and a table. Time goes across, bytes go up."""
        kind = _kind_of(path)
        _write(path, self.report(kind))

    def slot(self, name: str) -> "dict[str, Any]":
        """Where a value lies: offset (None: not in the arena), size, birth and death (steps), is_view, strides."""
        return self._handle.slot(name)

    def check(self) -> None:
        """Replays the plan byte by byte, knowing nothing of how it was made; fails where two values collide."""
        self._handle.check()

    def _repr_svg_(self) -> str:
        return self.report("svg")

    def __repr__(self) -> str:
        try:
            info = self.info()
        except _berth.Error:
            return "<berth.Plan of a binding that is not current>"
        return f"<berth.Plan: {info['arena_size']} bytes, {info['n_steps']} steps, {info['saved']} bytes saved>"


class Buffer(NamedTuple):
    """A buffer to pack: alive over the steps [lower, upper)."""

    size: int
    lower: int
    upper: int
    align: int = 0
    offset: Optional[int] = None


class Packing:
    """What ``pack`` found.

    offsets      one for each buffer, in order; None where no placement within the capacity was found
    size         bytes in all
    lower_bound  proven: no placement is smaller
    optimal      proven: size is the smallest
    fits         a placement within the capacity was found
    infeasible   proven: there is none
    """

    def __init__(self, buffers: "list[tuple[Any, ...]]", found: "dict[str, Any]") -> None:
        self._buffers = buffers
        self.offsets: Optional["list[int]"] = found["offsets"]
        self.size: int = found["size"]
        self.lower_bound: int = found["lower_bound"]
        self.optimal: bool = found["optimal"]
        self.fits: bool = found["fits"]
        self.infeasible: bool = found["infeasible"]

    def svg(self, names: Optional[Sequence[str]] = None, kind: str = "svg") -> str:
        """A drawing of it; kind 'html' is a page of its own."""
        if self.offsets is None:
            raise _berth.InvalidArgument("there is no placement to draw")
        return _berth.pack_picture(self._buffers, self.offsets, names, kind)

    def picture(self, path: PathLike, names: Optional[Sequence[str]] = None) -> None:
        """Draws it into a file, .svg or .html."""
        kind = _kind_of(path)
        _write(path, self.svg(names, kind))

    def _repr_svg_(self) -> Optional[str]:
        return self.svg() if self.offsets is not None else None

    def __repr__(self) -> str:
        proven = "optimal" if self.optimal else f"at least {self.lower_bound}"
        return f"<berth.Packing: {self.size} bytes, {proven}>"


def pack(
    buffers: "Iterable[Union[Buffer, Tuple[int, int, int], Sequence[Optional[int]]]]",
    capacity: Union[int, str, None] = None,
    *,
    effort: int = 0,
    seed: int = 0,
) -> Packing:
    """Places buffers with a size and a lifetime in one block, as small as it can be made.

    buffers   of (size, lower, upper), and where wanted alignment and a fixed offset: see Buffer
    capacity  stop at the first placement that fits into so many bytes
    effort    search steps; 1 constructs without searching
    seed      breaks ties; the same on every machine

    >>> pack([(4, 0, 3), (4, 3, 9), (4, 0, 9), (4, 9, 21), (4, 0, 21)]).size
    12
    """
    given = [tuple(buffer) for buffer in buffers]
    limit = None if capacity is None else bytes_of(capacity)
    return Packing(given, _berth.pack(given, limit, effort, seed))
