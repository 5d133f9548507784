"""``python -m tsadbench``."""

from tsadbench.cli import main

main()
