"""Generating text."""

from __future__ import annotations

import os
from typing import Any, Iterable, Iterator, NamedTuple, Optional, Sequence, Tuple, Union

from . import _berth
from ._plan import PathLike

Message = Union[Tuple[str, str], "dict[str, str]"]


class Piece(NamedTuple):
    """One token more."""

    token: int
    text: str
    is_end: bool


class Generator(_berth.GeneratorHandle):
    """A language model from a GGUF file, and the conversation that it is in.

    Generator(path, *, ctx=0, chunk=0, kv=None, device=None, threads=0, slide=False, top_k=40, temperature=0.8,
              top_p=0.95, min_p=0.05, repeat_penalty=1, repeat_last=64, seed=0)

    ctx    tokens that there is room for; 0: what the model was made with, at most 4096
    chunk  rows in which text is read
    kv     how keys and values are kept: "f32", "f16", "bf16", "q8_0"
    slide  where the context is full, forget its older half and go on

    All memory is taken here; generating allocates nothing. ::

        model = berth.Generator("model.gguf", temperature=0)
        for text in model.generate("Once upon a time", n=64):
            print(text, end="", flush=True)
    """

    def generate(self, prompt: Optional[str] = None, n: Optional[int] = 256, stop: Sequence[str] = ()) -> Iterator[str]:
        """Feeds the prompt, and gives the text that follows, piece by piece: until the model says that it is done, a
        text of `stop` comes, there are n tokens, or the context is full. Ctrl-C works between pieces."""
        if prompt is not None:
            self.feed(prompt)
        held = ""  # what may be the beginning of a text to stop at
        made = 0
        while n is None or made < n:
            try:
                piece = self.next()
            except _berth.DoesNotFit:
                break
            made += 1
            held += piece.text
            cut = min((held.index(text) for text in stop if text and text in held), default=None)
            if cut is not None:
                if held[:cut]:
                    yield held[:cut]
                return
            keep = 0 if piece.is_end else self._held_back(held, stop)
            if len(held) > keep:
                yield held[: len(held) - keep]
                held = held[len(held) - keep :]
            if piece.is_end:
                return
        if held:
            yield held

    @staticmethod
    def _held_back(text: str, stop: Iterable[str]) -> int:
        most = 0
        for wanted in stop:
            for size in range(1, min(len(wanted), len(text) + 1)):
                if text.endswith(wanted[:size]):
                    most = max(most, size)
        return most

    def next(self) -> Piece:
        """One token more."""
        return Piece(*self.next_piece())

    def chat(self, messages: Sequence[Message], n: Optional[int] = 256, stop: Sequence[str] = ()) -> Iterator[str]:
        """The answer to these messages, in the model's own template. Pass all of the chat every time: what the
        conversation has already is not evaluated again. A message is (role, text) or {"role": ..., "content": ...}."""
        pairs = [(m["role"], m["content"]) if isinstance(m, dict) else (m[0], m[1]) for m in messages]
        self.set_messages(pairs)
        return self.generate(None, n, stop)

    @property
    def tokens(self) -> "list[int]":
        """The tokens of the conversation."""
        tokens: "list[int]" = self.info()["tokens"]
        return tokens

    @property
    def arena_size(self) -> int:
        """Bytes of the one block: weights, cache, activations."""
        size: int = self.info()["arena_size"]
        return size

    def __enter__(self) -> "Generator":
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()


def generate(path: PathLike, prompt: str, n: int = 256, **options: Any) -> str:
    """A text that goes on where the prompt ends; for one prompt. `Generator` keeps the model."""
    with Generator(os.fspath(path), **options) as model:
        return "".join(model.generate(prompt, n))
