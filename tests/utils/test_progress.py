from __future__ import annotations

from tsadbench.utils.progress import listening, progress


def test_reports_reach_the_innermost_listener_and_nobody_outside():
    heard: list[tuple] = []
    progress(1, 2, "nobody listens")
    with listening(lambda *report: heard.append(("outer", *report))):
        with listening(lambda *report: heard.append(("inner", *report))):
            progress(1, 2, "a")
        progress(2, 2)
    progress(3, 2)
    assert heard == [("inner", 1, 2, "a"), ("outer", 2, 2, "")]
