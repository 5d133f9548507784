"""Tables on standard output hold labels as they are: brackets in them are no markup."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from tsadbench.cli.output import print_table


def test_labels_with_parameters_stand_whole_in_titles_headers_and_cells():
    output = StringIO()
    label = "sensor-range[mean=10]"
    print_table(
        Console(file=output, width=200), f"the title {label}", ["session", f"by {label}"], [["a", f"is {label}"]]
    )
    text = output.getvalue()
    assert [f"{before} {label}" in text for before in ("the title", "by", "is")] == [True] * 3
