"""Documents with a strict form: sums, word problems, conversions, code, logs, lists and records."""

from __future__ import annotations

import json

from lexicon import Author


def arithmetic(author: Author) -> str:
    """A few worked sums; the last line of each states the result again."""
    blocks = []
    for _ in range(author.rng.randint(2, 6)):
        a, b, c = author.number(3), author.number(3), author.number(1)
        blocks.append(
            author.pick(
                f"{a} + {b} = {a + b}",
                f"{a} - {b} = {a - b}",
                f"{a} * {c} = {a // 10 * 10} * {c} + {a % 10} * {c} = {a // 10 * 10 * c} + {a % 10 * c} = {a * c}",
                f"({a} + {b}) * {c} = {a + b} * {c} = {(a + b) * c}",
                f"{a} / {c} = {a // c} remainder {a % c}, because {a // c} * {c} = {a // c * c}",
                f"Let x = {a} and y = {b}. Then x + y + {c} = {a + b} + {c} = {a + b + c}.",
                f"{max(a, b)} is greater than {min(a, b)} by {abs(a - b)}.",
                f"{c}, {c + a}, {c + 2 * a}, {c + 3 * a}, {c + 4 * a}",
            )
        )
    return "\n".join(blocks)


def word_problem(author: Author) -> str:
    """A question in words with its worked answer."""
    who, other, things = author.entry("name"), author.entry("name"), author.noun(plural=True)
    a, b, c = author.number(2) + 2, author.number(2), author.rng.randint(2, 9)
    action = author.pick(f"{other} brings {b} more", f"finds {b} more in the {author.entry('place')}")
    start = f"{who} has {a} {author.entry('adj')} {things}"
    if author.maybe(0.5):
        question = f"{start} and {action}. Then each of them is sold for {c} coins."
        steps = f"There are {a} + {b} = {a + b} {things}. {a + b} * {c} = {(a + b) * c}"
        return f"Question: {question} How many coins is that?\nAnswer: {steps}. The answer is {(a + b) * c}."
    question = f"{start}, shared by {c} {author.noun(plural=True)}. How many does each get, and how many are left?"
    steps = f"{a} = {c} * {a // c} + {a % c}"
    return f"Question: {question}\nAnswer: {steps}. Each gets {a // c} and {a % c} are left."


def conversion(author: Author) -> str:
    """Unit conversions, one a line."""
    lines = []
    for _ in range(author.rng.randint(2, 6)):
        large, small, factor = author.entry("unit").split("/")
        n = author.number(2)
        forward = f"{n} {large} = {n} x {factor} {small} = {n * int(factor)} {small}"
        lines.append(forward if author.maybe(0.7) else f"{n * int(factor)} {small} make {n} {large}")
    return "\n".join(lines)


def code(author: Author) -> str:
    """A short Python function; it parses, and its names are ordinary ones."""
    a = b = c = author.entry("ident")
    while len({a, b, c}) < 3:
        b, c = author.entry("ident"), author.entry("ident")
    head = f"def {author.entry('func')}_{author.entry('ident')}({a}, {b}={author.number(2)}):\n"
    if author.maybe(0.5):
        head += f'    """Return the {author.entry("adj")} {c} of the {author.noun()}."""\n'
    op, compare = author.pick("+", "-", "*", "//", "%"), author.pick("<", ">", "==", "!=", ">=")
    body = author.pick(
        f"    {c} = []\n    for item in {a}:\n        if item {compare} {b}:\n"
        f"            {c}.append(item {op} {author.number(2)})\n    return {c}\n",
        f"    {c} = {a} {op} {b}\n    if {c} {compare} {author.number(3)}:\n"
        f'        raise ValueError(f"{a} is {{{a}}}")\n    return {c}\n',
        f"    return [{c} {op} {b} for {c} in {a} if {c} {compare} {author.number(2)}]\n",
        f"    {c} = {{}}\n    while {a} {compare} {b}:\n        {a} {op}= {author.number(1)}\n"
        f"        {c}[{a}] = {author.entry('func')}({b})\n    return {c}\n",
        f"    with open({a}) as {c}:\n"
        f'        return {c}.read().split("{author.entry("noun").split("/")[0]}")[{author.number(1)}]\n',
    )
    return head + body


def log(author: Author) -> str:
    """Lines of a key=value service log with rising times."""
    rng, minute, lines = author.rng, author.rng.randrange(1440), []
    for _ in range(rng.randint(3, 10)):
        minute += rng.randrange(5)
        fields = [
            f"user={author.entry('name').lower()}{author.number(2)}",
            f"ms={author.number(4)}",
            f"status={author.pick('200', '200', '200', '404', '500', '503', '301')}",
            f"id={rng.randrange(16**6):06x}",
            f"host={author.entry('service')}-{rng.randint(1, 12):02d}",
            f"size={author.number(6)}",
        ]
        chosen = " ".join(rng.sample(fields, rng.randint(1, 4)))
        stamp = f"{minute // 60 % 24:02d}:{minute % 60:02d}:{rng.randrange(60):02d}"
        lines.append(f"{stamp} {author.entry('level')} {author.entry('service')} {author.entry('event')} {chosen}")
    return "\n".join(lines)


def shopping(author: Author) -> str:
    """A titled list of things with amounts, and the total."""
    bullet, total, lines = author.pick("- ", "* ", "", "[ ] "), 0, []
    for _ in range(author.rng.randint(3, 9)):
        price = author.number(2)
        total += price
        what = author.entry("mass") if author.maybe(0.4) else f"{author.entry('adj')} {author.noun()}"
        lines.append(f"{bullet}{what}: {price} {author.pick('€', 'coins', 'kr')}")
    title = f"{author.pick('List', 'Bill', 'Inventory')} for {author.person()}"
    return "\n".join((title, *lines, f"Total: {total}"))


def record(author: Author) -> str:
    """JSON records, one a line, or a table with the same columns."""
    rows = [
        {
            "name": author.entry("name"),
            "town": author.entry("place"),
            "age": author.rng.randint(1, 99),
            "likes": author.noun(),
        }
        for _ in range(author.rng.randint(2, 5))
    ]
    if author.maybe(0.5):
        return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    body = "\n".join("| " + " | ".join(str(value) for value in row.values()) + " |" for row in rows)
    return f"| {' | '.join(rows[0])} |\n|---|---|---|---|\n{body}"


def weather(author: Author) -> str:
    """Readings of one day at some places."""
    lines = []
    for _ in range(author.rng.randint(2, 6)):
        celsius = author.rng.randint(-20, 38)
        sky = author.pick("sunny", "cloudy", "snow", "light rain", "fog", "gale warnings", "thunder")
        reading = f"{author.entry('place').title()}: {celsius} °C ({celsius * 9 / 5 + 32:.1f} °F)"
        lines.append(f"{reading}, {sky}, wind {author.number(2)} km/h")
    return "\n".join(lines)


def definition(author: Author) -> str:
    """What some words mean, and the alphabetical order of a few."""
    noun = author.noun()
    words = [author.noun() for _ in range(author.rng.randint(3, 6))]
    purpose = f"used to {author.verb('verb_t', 'base')} {author.noun(plural=True)}"
    return (
        f"{noun.capitalize()}: a {author.entry('adj')} {author.noun()} {purpose}, often {author.entry('colour')}.\n"
        f"Sort: {', '.join(words)}\nSorted: {', '.join(sorted(words))}"
    )
