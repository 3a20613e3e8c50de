"""Documents in running English: a small recursive grammar, and the forms that use it."""

from __future__ import annotations

from lexicon import Author


def noun_phrase(author: Author, depth: int = 0) -> str:
    """A noun phrase; at most two relative clauses deep."""
    roll = author.rng.random()
    if roll < 0.25:
        return author.person()
    if roll < 0.32:
        return f"{author.pick('the', 'some', 'no more', 'a little')} {author.entry('mass')}"
    adjectives = " ".join(author.entry("adj") for _ in range(author.rng.choice((0, 0, 0, 1, 1, 2))))
    plural = author.maybe(0.25)
    quantity = author.pick("the", "the", "some", "many", "two", "three", "seven", str(author.number(2)), "all the")
    single = author.pick("the", "the", "the", "his", "her", "their", "that", "every")
    noun = author.noun(plural=plural)
    if not plural and author.maybe(0.35):
        following = adjectives or noun
        single = "an" if following[0] in "aeio" else "a"
    phrase = " ".join(part for part in (quantity if plural else single, adjectives, noun) if part)
    roll = author.rng.random()
    if depth < 2 and roll < 0.1:
        return f"{phrase} that {noun_phrase(author, depth + 1)} {author.verb('verb_t', 'past')}"
    if depth < 2 and roll < 0.2:
        return f"{phrase} {prepositional(author, depth + 1)}"
    return f"{phrase} of {author.coined() if author.maybe(0.3) else author.entry('place')}" if roll < 0.24 else phrase


def prepositional(author: Author, depth: int = 0) -> str:
    """A preposition with a place or a thing."""
    target = noun_phrase(author, depth)
    if author.maybe(0.4):
        place = author.entry("place")
        target = place if place[0].isupper() else f"the {place}"
    return f"{author.entry('prep')} {target}"


def clause(author: Author, depth: int = 0) -> str:
    """A past-tense clause without its capital and full stop."""
    adverb = f"{author.entry('adv')} " if author.maybe(0.2) else ""
    subject = author.pick("he", "she", "they", "it", "we", "I") if author.maybe(0.25) else noun_phrase(author, depth)
    roll = author.rng.random()
    if roll < 0.5:
        core = f"{adverb}{author.verb('verb_t', 'past')} {noun_phrase(author, depth)}"
    elif roll < 0.75:
        core = f"{adverb}{author.verb('verb_i', 'past')} {prepositional(author, depth)}"
    elif roll < 0.85:
        core = f"had {adverb}{author.pick('been', 'seemed', 'become', 'grown')} {author.entry('adj')}"
    else:
        core = f"{author.pick('could not', 'began to', 'tried to', 'wanted to', 'had to', 'would')} "
        core += f"{author.verb('verb_t', 'base')} {noun_phrase(author, depth)}"
    return f"{subject} {core}" + (f" {author.entry('when')}" if author.maybe(0.15) else "")


def sentence(author: Author) -> str:
    """One sentence, capitalised and stopped."""
    text = clause(author)
    roll = author.rng.random()
    if roll < 0.2:
        text += f" {author.entry('why')} {clause(author, 1)}"
    elif roll < 0.35:
        text += f", {author.pick('and', 'but', 'so', 'yet', 'and then')} {clause(author, 1)}"
    elif roll < 0.45:
        text = f"{author.entry('when')}, {text}"
    elif roll < 0.52:
        text = f"{author.verb('verb_t', 'ing')} {noun_phrase(author, 1)}, {text}"
    return text[0].upper() + text[1:] + author.pick(".", ".", ".", ".", ".", ".", "!", "?")


def paragraph(author: Author, low: int = 2, high: int = 6) -> str:
    """Between ``low`` and ``high`` sentences."""
    return " ".join(sentence(author) for _ in range(author.rng.randint(low, high)))


def story(author: Author) -> str:
    """A titled story of one to four paragraphs."""
    title = f"The {author.entry('adj').title()} {author.noun().title()}\n\n" if author.maybe(0.6) else ""
    return title + "\n\n".join(paragraph(author) for _ in range(author.rng.randint(1, 4)))


def dialogue(author: Author) -> str:
    """Two speakers in turns."""
    speakers = [author.person(), author.person()]
    lines = []
    for turn in range(author.rng.randint(3, 10)):
        said = author.pick(
            f"Did you {author.verb('verb_t', 'base')} {noun_phrase(author)}?",
            f"I am {author.entry('feeling')} that {clause(author, 1)}.",
            f"{author.pick('Yes', 'No', 'Perhaps', 'Well', 'Of course')}, {clause(author, 1)}.",
            f"Why is the {author.noun()} so {author.entry('adj')}?",
            f"Please {author.verb('verb_t', 'base')} {noun_phrase(author)} {author.entry('when')}.",
            sentence(author),
        )
        lines.append(f"{speakers[turn % 2]}: {said}")
    return "\n".join(lines)


def letter(author: Author) -> str:
    """A short letter."""
    place, day = author.entry("place").title(), f"{author.rng.randint(1, 28)} {author.pick('May', 'June', 'October')}"
    opening = f"I am {author.entry('feeling')} to hear that {clause(author, 1)}."
    closing = author.pick("Yours", "With kind regards", "Your friend", "In haste", "Love")
    body = f"Dear {author.person()},\n\n{opening} {paragraph(author)}"
    return f"{place}, {day}\n\n{body}\n\n{closing},\n{author.person()}"


def encyclopaedia(author: Author) -> str:
    """An entry about somebody or some place that does not exist."""
    name, born = author.coined(), author.rng.randint(1400, 1980)
    if author.maybe(0.5):
        text = f"{name} {author.entry('surname')} ({born}-{born + author.rng.randint(20, 95)}) was a "
        text += f"{author.entry('adj')} {author.noun()} from {author.entry('place')}, "
        text += f"known for {author.entry('subject')}."
    else:
        text = f"{name} is a {author.entry('adj')} {author.entry('place')} with {author.number(6):,} inhabitants, "
        text += f"{author.number(3)} km from {author.coined()}. It was founded in {born}."
    return f"{text} {paragraph(author, 1, 4)}"
