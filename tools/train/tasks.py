"""The text of the bundled models: four kinds of small, checkable tasks made from a random
generator.

A document is a prompt, an answer and a newline. `key` is equal for documents with the same task
in another form (7 + 5 and 5 + 7; the same letters in another order); held-out tasks differ from
training tasks in their keys.
"""

import dataclasses
import random
import string

NAMES = [
    "Ada",
    "Ben",
    "Cleo",
    "Dora",
    "Emil",
    "Finn",
    "Greta",
    "Hugo",
    "Ivy",
    "Jonas",
    "Kira",
    "Leo",
    "Mona",
    "Nils",
    "Olga",
    "Pablo",
    "Quentin",
    "Rosa",
]
COLOURS = [
    "red",
    "brown",
    "black",
    "white",
    "gray",
    "golden",
    "little",
    "clever",
    "sleepy",
    "brave",
]
ANIMALS = [
    "fox",
    "cat",
    "bear",
    "mouse",
    "rabbit",
    "otter",
    "badger",
    "owl",
    "duck",
    "hedgehog",
    "goat",
    "panda",
    "squirrel",
]
THINGS = [
    "apples",
    "pears",
    "nuts",
    "shells",
    "pebbles",
    "feathers",
    "berries",
    "buttons",
    "marbles",
    "stamps",
    "acorns",
    "ribbons",
    "candles",
    "flowers",
]
GAINS = ["finds", "buys", "picks", "collects"]
LOSSES = ["loses", "sells", "gives away", "hides"]


@dataclasses.dataclass(frozen=True)
class Task:
    kind: str
    prompt: str
    answer: str  # follows the prompt, without the space before it and the newline after it
    key: tuple


def total(rng):
    a, b = rng.randrange(100), rng.randrange(100)
    return Task("sum", f"Q: {a} + {b} = ?\nA:", str(a + b), (min(a, b), max(a, b)))


def sort(rng):
    letters = rng.sample(string.ascii_lowercase, rng.randint(3, 7))
    ordered = sorted(letters)
    return Task("sort", "sort: " + " ".join(letters) + "\n->", " ".join(ordered), tuple(ordered))


def story(rng):
    name, thing = rng.choice(NAMES), rng.choice(THINGS)
    a, b, loses = rng.randint(2, 30), rng.randint(2, 20), rng.random() < 0.5
    if loses and a <= b:
        a, b = b + 1, a
    deed = f"{rng.choice(LOSSES)} {b} of them" if loses else f"{rng.choice(GAINS)} {b} more"
    prompt = (
        f"{name} the {rng.choice(COLOURS)} {rng.choice(ANIMALS)} has {a} {thing} and {deed}. "
        f"Now {name} has"
    )
    return Task("story", prompt, f"{a - b if loses else a + b} {thing}.", (prompt,))


def count(rng):
    first, length = rng.randint(0, 90), rng.randint(3, 7)
    last = first + length
    numbers = " ".join(str(n) for n in range(first, last + 1))
    return Task("count", f"count from {first} to {last}:", numbers, (first, last))


KINDS = {total: 0.4, sort: 0.25, story: 0.25, count: 0.1}


def any_task(rng: random.Random):
    return rng.choices(list(KINDS), list(KINDS.values()))[0](rng)


def held_out(seed, size):
    """`size` different tasks, in the same mixture as the training text."""
    rng, chosen = random.Random(seed), {}
    while len(chosen) < size:
        task = any_task(rng)
        chosen.setdefault((task.kind, task.key), task)
    return list(chosen.values())


def training_tasks(seed, excluded):
    """An endless stream that avoids the keys of `excluded`."""
    rng, keys = random.Random(seed), {(t.kind, t.key) for t in excluded}
    while True:
        task = any_task(rng)
        if (task.kind, task.key) not in keys:
            yield task
