"""``python -m tsadbench`` and the command ``tsadbench``."""

import signal

from tsadbench.cli.interrupts import end_at_once, interrupt_once

# A process in the background was told to ignore Ctrl-C.
_expected = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _expected:
    signal.signal(signal.SIGINT, end_at_once)
from tsadbench.cli.app import main  # noqa: E402 - it takes a third of a second, in which Ctrl-C has to work

if _expected:
    signal.signal(signal.SIGINT, interrupt_once)

if __name__ == "__main__":
    main()
