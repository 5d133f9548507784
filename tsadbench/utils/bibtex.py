"""BibTeX entries from references in words, as docstrings and data sets have them; what they lack is left out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tsadbench.utils.docstrings import sections, year_of

# One author of a detector's reference: initials, then the surname; and of a data set's: the surname, then initials.
_INITIALS = r"(?:[A-Z]\.(?:[ -]?[A-Z]\.)*)"
_SURNAME = r"[A-Z][\w'-]+(?: [A-Z][\w'-]+)?"
_INITIALS_FIRST = re.compile(rf"{_INITIALS} {_SURNAME}(?: et al\.)?")
_SURNAME_FIRST = re.compile(rf"({_SURNAME}), ({_INITIALS}(?: {_INITIALS})*)")
_BETWEEN = re.compile(r", and |, | and ")
_ARXIV = re.compile(r"\(?arXiv (\d{4}\.\d{4,5})\)?")
_JOURNAL = re.compile(r"(?P<journal>.*\D) (?P<volume>\d+)(?:\((?P<number>\d+)\))?(?:, (?P<pages>\d+-\d+))?")
_PAGES = re.compile(r"(?P<venue>.+), (?P<pages>\d+-\d+)")
_DOI = re.compile(r"doi:\s?(\S+?)(?=[.,]?(?:\s|$))")
# A data set's citation goes on with what is no part of the publication.
_REMARK = re.compile(r" (?=(?:Files|Data|Records): )")
_SMALL = frozenset({"a", "an", "the", "on", "of", "in"})


@dataclass(frozen=True, slots=True)
class Entry:
    """A BibTeX entry.

    Parameters
    ----------
    kind
        "article", or "misc" where only a text says where it was published.
    key
        What ``cite`` commands take.
    fields
        By name, in order; plain text.
    """

    kind: str
    key: str
    fields: Mapping[str, str]

    def __str__(self) -> str:
        lines = [f"  {name} = {{{_escaped(text)}}}," for name, text in self.fields.items()]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])


def of_detector(name: str, paper: str, docstring: str) -> Entry:
    r"""Return the entry of a detector's publication; one with a note if it has none, or it is not understood.

    Parameters
    ----------
    name
        The detector's.
    paper
        Its ``traits.paper``: of several references that of this author counts.
    docstring
        Its class's, whose section "References" has it in full.

    Examples
    --------
    >>> print(of_detector("gdn", "Deng", "GDN.\n\nReferences\n----------\nA. Deng and B. Hooi, Graphs, AAAI 2021."))
    @misc{deng2021graphs,
      author = {A. Deng and B. Hooi},
      title = {{Graphs}},
      year = {2021},
      howpublished = {AAAI 2021},
    }
    """
    text = " ".join(sections(docstring).get("References", "").split())
    surname = next(iter(re.findall(r"[^\W\d_]{2,}", paper)), "")
    references = [part.strip() for part in re.split(r"; |(?<=[\d)]\.) (?=[A-Z])", text)]
    reference = next((part for part in references if surname and surname in part.split(",")[0]), references[0])
    parsed = _detector_fields(reference.rstrip("."))
    if parsed is None:
        note = reference or paper.replace("`", "") or "A detector of tsadbench, without a publication of its own"
        return Entry("misc", name, _known({"title": f"{{{name}}}", "year": year_of(paper, docstring), "note": note}))
    return _entry(parsed)


def of_dataset(name: str, citation: str) -> Entry:
    """Return the entry of a data set's publication, from its citation: "Surname, I. (year). Title. Where. doi:...".

    A citation that is not understood becomes a note.
    """
    first, *remarks = _REMARK.split(" ".join(citation.split()))
    found = re.fullmatch(r"(?P<authors>.+?) \((?P<year>\d{4})\)\. (?P<title>.+?)\.(?: (?P<rest>[A-Za-z].*))?", first)
    authors = [] if found is None else _SURNAME_FIRST.findall(found["authors"])
    if found is None or not authors:
        return Entry("misc", name, _known({"title": f"{{{name}}}", "note": " ".join([first, *remarks])}))
    rest = found["rest"] or ""
    doi = _DOI.search(rest)
    where = _DOI.sub("", rest).strip(" .")
    fields = {
        "author": " and ".join(f"{surname}, {initials}" for surname, initials in authors),
        "title": found["title"],
        "year": found["year"],
        **_where(where, found["year"]),
        "doi": doi[1] if doi else "",
        "note": " ".join(remarks).rstrip("."),
    }
    return _entry(fields)


def of_program(version: str) -> Entry:
    """Return the entry of this bench."""
    title = "tsadbench: a benchmark harness for anomaly detection in multivariate sensor series"
    return Entry("misc", "tsadbench", {"title": f"{{{title}}}", "note": f"Version {version}"})


def bibliography(entries: Iterable[Entry]) -> str:
    """Return entries as a file; equal ones once, and different ones never under one key."""
    taken: dict[str, Entry] = {}
    for entry in entries:
        key, suffix = entry.key, ord("a")
        while key in taken and not _same(taken[key], entry):
            suffix += 1
            key = f"{entry.key}{chr(suffix)}"
        taken.setdefault(key, Entry(entry.kind, key, entry.fields))
    return "".join(f"{entry}\n\n" for entry in taken.values()).rstrip("\n") + "\n"


def _same(one: Entry, other: Entry) -> bool:
    """Whether two entries are of one publication: a data set and a detector may have one in common."""
    return _plain(one.fields["title"]) == _plain(other.fields["title"])


def _detector_fields(reference: str) -> dict[str, str] | None:
    """Return author, title, year and where; None if the reference is not "Authors, Title, Where[, Year]"."""
    authors, rest = [], reference
    while found := _INITIALS_FIRST.match(rest):
        authors.append(found[0].replace(" et al.", " and others"))
        rest = rest[found.end() :]
        between = _BETWEEN.match(rest)
        if between is None:
            break
        rest = rest[between.end() :]
    arxiv = _ARXIV.search(rest)
    parts = [part.strip() for part in re.sub(r"\([^)]*[A-Za-z][^)]*\)", "", rest).split(",")]
    alone = re.fullmatch(r"(?:19|20)\d\d", parts[-1])
    year = alone[0] if alone else year_of(parts[-1])
    parts = parts[:-1] if alone else parts
    if not authors or not year or len(parts) < 2:
        return None
    start = next((i for i, part in enumerate(parts) if part.startswith("in: ")), len(parts) - 1)
    where = ", ".join(parts[start:]).removeprefix("in: ")
    fields = {"author": " and ".join(authors), "title": ", ".join(parts[:start]), "year": year}
    fields |= {} if _ARXIV.fullmatch(where) else _where(where, year)
    return {**fields, **({"eprint": arxiv[1], "archiveprefix": "arXiv"} if arxiv else {})}


def _where(text: str, year: str) -> dict[str, str]:
    """Return journal, volume, number and pages; ``howpublished`` if it is no "Journal 12(3), 4-5"."""
    journal = _JOURNAL.fullmatch(text)
    if journal and journal["volume"] != year:
        return {name: journal[name] or "" for name in ("journal", "volume", "number", "pages")}
    pages = _PAGES.fullmatch(text)
    return {"howpublished": pages["venue"], "pages": pages["pages"]} if pages else {"howpublished": text}


def _entry(fields: Mapping[str, str]) -> Entry:
    first = fields["author"].split(" and ")[0]
    surname = first.partition(",")[0] if "," in first else first.split(" ")[-1]
    word = next((word for word in re.findall(r"\w+", _plain(fields["title"])) if word not in _SMALL), "")
    key = f"{_plain(surname).replace(' ', '')}{fields['year']}{word}"
    known = _known({**fields, "title": f"{{{fields['title']}}}", "pages": fields.get("pages", "").replace("-", "--")})
    return Entry("article" if "journal" in known else "misc", key, known)


def _known(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in fields.items() if text}


def _plain(text: str) -> str:
    """Return a text in lower case without accents, braces and punctuation."""
    letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return " ".join(re.findall(r"[a-z0-9]+", letters))


def _escaped(text: str) -> str:
    return re.sub(r"([&%#_$])", r"\\\1", text)
