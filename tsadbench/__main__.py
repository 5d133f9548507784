"""``python -m tsadbench`` and the command ``tsadbench``."""

from tsadbench.cli.interrupts import expect_interrupts, raise_interrupts

expect_interrupts()
from tsadbench.cli.app import main  # noqa: E402 - it takes a third of a second, in which Ctrl-C has to work

raise_interrupts()

if __name__ == "__main__":
    main()
