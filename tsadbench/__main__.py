"""``python -m tsadbench`` and the command ``tsadbench``."""

import signal

from tsadbench.cli.interrupts import end_at_once, interrupt_once

# Shells start background processes with Ctrl-C ignored: keep it so.
_expected = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _expected:
    signal.signal(signal.SIGINT, end_at_once)
from tsadbench.cli.app import main  # noqa: E402 - the import takes a third of a second; Ctrl-C must work meanwhile

if _expected:
    signal.signal(signal.SIGINT, interrupt_once)

if __name__ == "__main__":
    main()
