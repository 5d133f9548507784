"""The Python API of tsadbench: what the commands do, plus helpers for scripts, documented where they are defined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tsadbench._lazy import lazy

if TYPE_CHECKING:
    from tsadbench._version import __version__
    from tsadbench.analysis.audit import MARKS, audit
    from tsadbench.analysis.audit.findings import shipped_note
    from tsadbench.analysis.audit.label_noise import fits_of, label_changes, label_noise
    from tsadbench.analysis.diagnostics import with_diagnostics
    from tsadbench.analysis.explanation import explain, narrative
    from tsadbench.analysis.significance.compare import compare
    from tsadbench.analysis.significance.rank import rank
    from tsadbench.analysis.stored import select, stored_trials
    from tsadbench.api.board import load_board, shown_against
    from tsadbench.api.checking import check
    from tsadbench.api.live import progress_bar
    from tsadbench.api.loading import fetch, load_dataset, load_prior
    from tsadbench.api.plotting import plot, plot_scores, require_figure
    from tsadbench.api.running import completed, run_plans, run_request
    from tsadbench.base import DataOptions, LabelledDataset, LibraryDetector, extra
    from tsadbench.base.file_format import FileFormat
    from tsadbench.datasets.draft import draft_card
    from tsadbench.datasets.loading import SUITES, card_loader, loader
    from tsadbench.datasets.shipped import VARIABLE, listed, place, published
    from tsadbench.execution.plan import make_plan, make_protocol, require_evaluated
    from tsadbench.execution.record import Record
    from tsadbench.execution.request import RunRequest, requested
    from tsadbench.execution.runner import ALL_BUT_OK
    from tsadbench.execution.store import Store, require_outside_stores
    from tsadbench.leaderboard.board import Leaderboard
    from tsadbench.leaderboard.checks import read_reports
    from tsadbench.leaderboard.regression import check_table, run_again, to_junit, to_markdown
    from tsadbench.leaderboard.render import Form, Table, number, print_tables, table_lines
    from tsadbench.registry import (
        Kind,
        Source,
        defaults,
        entries,
        know_protocol,
        load_protocol,
        locate,
        locate_entry,
        package_of,
    )
    from tsadbench.reporting.figures import explanation
    from tsadbench.reporting.figures.audit import draw_audit
    from tsadbench.reporting.figures.significance import draw, draw_ranking
    from tsadbench.reporting.figures.style import page, style
    from tsadbench.reporting.report import write_report
    from tsadbench.results.bank import BankFolder, build_bank, fetch_bank
    from tsadbench.results.judging import SINGLE_PRECISION, Finding, judge_all
    from tsadbench.results.verification import drawn, repeat, verify, why_new
    from tsadbench.sandbox import BoxFailure, Construction, ask, asking, describe, seal_status
    from tsadbench.sandbox.server import default_server
    from tsadbench.serving import Model, fit_model, score_rows
    from tsadbench.serving.fitting import write_model
    from tsadbench.serving.model import boxed_model
    from tsadbench.testing import CheckResult
    from tsadbench.tuning.study import best_and_defaults, label_at, n_counted, run_study, write_tuned
    from tsadbench.tuning.task import Settings, make_task
    from tsadbench.utils.docstrings import definitions, sections
    from tsadbench.utils.files import open_text, require_writable, write_file
    from tsadbench.utils.parameters import (
        Label,
        format_value,
        nearest,
        normal_label,
        parameters_of,
        parse_label,
        require_known,
    )
    from tsadbench.utils.progress import progress
    from tsadbench.utils.text import counted, first_of, one_line, printable

__getattr__ = lazy(__name__, __file__)  # the imports above happen on first use
