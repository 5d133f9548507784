"""LaTeX: texts set literally, and tables with the rules of booktabs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tsadbench.utils.text import printable

# One pass over the text, so that no replacement is replaced again. The marks are those of `cells` and `marks`.
_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "↓": r"$\downarrow$",
        "⇊": r"$\Downarrow$",
        "⚠": r"$\ddagger$",
        "△": r"$\triangle$",
        "∞": r"$\infty$",
        "≠": r"$\neq$",
        "◇": r"$\diamond$",
        "°": r"$^{\circ}$",
        "✗": r"$\times$",
        "±": r"$\pm$",
    }
)
PREAMBLE = r"% In the preamble: \usepackage{booktabs}"


def escape(text: str) -> str:
    """Return text as LaTeX sets it literally; a line break becomes a space."""
    return printable(text.replace("\n", " ")).translate(_ESCAPES)


def tabular(layout: str, header: Sequence[str], blocks: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a tabular environment: a header and blocks of rows in LaTeX, rules of booktabs between."""
    return [
        rf"\begin{{tabular}}{{{layout}}}",
        r"\toprule",
        " & ".join(map(escape, header)) + r" \\",
        *(line for block in blocks if block for line in (r"\midrule", *block)),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def floating(caption: str, label: Sequence[str], tabulars: Sequence[str], below: str) -> str:
    """Return a ``table*`` environment, as wide as a page of two columns."""
    return "\n".join(
        [
            r"\begin{table*}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{'-'.join(map(_slug, label))}}}",
            r"\scriptsize",
            r"\setlength{\tabcolsep}{3pt}",
            *tabulars,
            "",
            r"\smallskip",
            r"\begin{minipage}{\textwidth}",
            r"\scriptsize",
            r"\raggedright",
            below,
            r"\end{minipage}",
            r"\end{table*}",
            "",
        ]
    )


def small_print(texts: Iterable[str]) -> str:
    """Return texts as LaTeX sets them literally, each a paragraph."""
    return r"\par ".join(map(escape, texts))


def label_text(text: str) -> str:
    """Return a row's label in LaTeX."""
    return rf"\texttt{{{escape(text)}}}"


def numeral(text: str) -> str:
    """Return a cell's text in LaTeX: a dash for what is undefined, and the minus signs of numbers."""
    return "--" if text == "-" else re.sub(r"(?<![0-9A-Za-z])-(?=[.0-9])", r"$-$", escape(text))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
