"""Write the prompts of the examples: text of the same kinds as the training text, from a stream of its own."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

from corpus import MODEL_FOLDER, generated
from tokenizers import Tokenizer

SHORT = ("The", "Once", "def ", "Question:", "08:15:00 INFO", "Dear Anna,")
"""Openings of one to nine tokens, where the next token is least certain."""
LENGTHS = (9, 12, 14, 17, 20, 24, 28, 32, 37, 42, 48, 55, 63, 72, 85, 101, 118, 126, 143, 170, 205, 260)
"""Tokens in each further prompt. vLLM's prefix cache on a CPU works in blocks of 128 tokens: some are longer."""
SHARED = (140, 150)
"""Tokens of the openings which two prompts share, one pair of prompts for each."""


def cut(tokenizer: Tokenizer, text: str, length: int) -> str:
    """The first ``length`` tokens of ``text`` as text; empty where the text is shorter or the cut is no clean one."""
    ids = tokenizer.encode(text).ids[:length]
    part: str = tokenizer.decode(ids)
    return part if len(ids) == length and tokenizer.encode(part).ids == ids else ""


def passages(seed: int) -> Iterator[str]:
    """Documents on their own and documents in a row, as the model saw them; without end."""
    documents = generated(f"{seed}/prompts")
    while True:
        yield next(documents)
        yield "\n".join(itertools.islice(documents, 3))


def prompts(tokenizer: Tokenizer, seed: int) -> list[str]:
    """Short openings, one prompt for each of ``LENGTHS``, and the pairs with a shared beginning."""
    source = passages(seed)

    def of_length(length: int) -> str:
        return next(part for text in source if (part := cut(tokenizer, text, length)))

    texts = [*SHORT, *(of_length(length) for length in LENGTHS)]
    for length in SHARED:
        shared = of_length(length)
        texts += [f"{shared}\n{of_length(20)}", f"{shared}\n{of_length(35)}"]
    return texts


def main() -> None:
    """Write the prompts as JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=MODEL_FOLDER)
    parser.add_argument("--out", type=Path, default=MODEL_FOLDER.with_name("qwen3-tiny-prompts.jsonl"))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(options.model / "tokenizer.json"))
    texts = prompts(tokenizer, options.seed)
    lines = [json.dumps({"id": f"p{index:02d}", "text": text}, ensure_ascii=False) for index, text in enumerate(texts)]
    scratch = options.out.with_suffix(".part")
    scratch.write_text("\n".join(lines) + "\n", encoding="utf-8")
    scratch.replace(options.out)
    lengths = [len(tokenizer.encode(text).ids) for text in texts]
    print(f"{len(texts)} prompts of {min(lengths)} to {max(lengths)} tokens: {lengths}")


if __name__ == "__main__":
    main()
