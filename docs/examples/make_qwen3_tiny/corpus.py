"""The training text: the Apache licence, the project's own prose, and generated documents.

``python corpus.py --out FOLDER`` writes what the model is trained on and what is held out, to be read.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import english
import formal
from lexicon import Author, read_lexicon

MODEL_FOLDER = Path(__file__).resolve().parent.parent / "qwen3-tiny"
CARRIED = (MODEL_FOLDER / "LICENSE", MODEL_FOLDER / "corpus" / "prose.txt")
KINDS: dict[Callable[[Author], str], int] = {
    english.story: 30,
    english.dialogue: 14,
    english.letter: 8,
    english.encyclopaedia: 10,
    formal.arithmetic: 7,
    formal.word_problem: 8,
    formal.conversion: 3,
    formal.code: 10,
    formal.log: 5,
    formal.shopping: 5,
    formal.record: 4,
    formal.weather: 3,
    formal.definition: 5,
}
"""Relative frequency of each kind of generated document."""


def generated(seed: str) -> Iterator[str]:
    """Documents without end; the same ``seed`` gives the same documents on every machine."""
    rng, sections = random.Random(seed), read_lexicon()
    kinds, weights = list(KINDS), list(KINDS.values())
    while True:
        (kind,) = rng.choices(kinds, weights)
        yield kind(Author(rng, sections)).strip() + "\n"


def carried() -> list[str]:
    """The licence and the prose, cut at blank lines into pieces of about 1,500 characters."""
    pieces: list[str] = []
    for path in CARRIED:
        piece = ""
        for block in path.read_text(encoding="utf-8").split("\n\n"):
            piece += block + "\n\n"
            if len(piece) > 1500:
                pieces.append(piece.strip() + "\n")
                piece = ""
        pieces.append(piece.strip() + "\n")
    return [piece for piece in pieces if piece.strip()]


def split_corpus(seed: int, total_bytes: int, held_out: float = 0.03) -> tuple[list[str], list[str]]:
    """Documents to train on and documents held out, about ``total_bytes`` of UTF-8 in all.

    Generated documents that are held out come from a stream of their own; one piece in sixteen of the carried text is
    held out too.
    """
    pieces = carried()
    train = [piece for index, piece in enumerate(pieces) if index % 16 != 9]
    held = [piece for index, piece in enumerate(pieces) if index % 16 == 9]
    budget = total_bytes - sum(len(piece.encode()) for piece in pieces)
    for documents, stream, share in ((train, "train", 1 - held_out), (held, "held-out", held_out)):
        size, source = 0, generated(f"{seed}/{stream}")
        while size < budget * share:
            documents.append(next(source))
            size += len(documents[-1].encode())
    random.Random(seed).shuffle(train)
    return train, held


def main() -> None:
    """Write the two parts as text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for train.txt and held-out.txt")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bytes", type=int, default=2_300_000, help="size of both parts together")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, documents in zip(("train", "held-out"), split_corpus(options.seed, options.bytes), strict=True):
        text = "\n".join(documents)
        (options.out / f"{name}.txt").write_text(text, encoding="utf-8")
        print(f"{name}: {len(documents)} documents, {len(text.encode())} bytes")


if __name__ == "__main__":
    main()
