"""Files of a folder that are copies of each other."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from tsadbench.datasets.cards.look import Look


def originals_of(looks: Sequence[Look]) -> dict[str, str]:
    """Return for each file that of the same bytes with the shortest name, itself if there is no other."""
    size_of = {look.file.name: look.file.path.stat().st_size for look in looks}
    sizes, seen, originals = Counter(size_of.values()), dict[str, str](), dict[str, str]()
    for look in sorted(looks, key=lambda look: (len(look.file.name), look.file.name)):
        name = look.file.name
        originals[name] = name
        if sizes[size_of[name]] > 1:
            with look.file.path.open("rb") as file:
                originals[name] = seen.setdefault(hashlib.file_digest(file, "sha256").hexdigest(), name)
    return originals
