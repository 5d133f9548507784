"""Commands of plugins: entry points of the group ``tsadbench.commands``, each a `typer.Typer`, imported when used."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

from tsadbench.errors import PluginError
from tsadbench.registry import entries, locate_entry


class PluginCommand(TyperCommand):
    """Stands for a plugin's command, so that neither --help nor another command imports the plugin."""

    def load(self) -> Any:  # Typer's own classes, which differ by version
        """Return the plugin's command.

        A PluginError if the plugin cannot be imported, two packages claim the name, or it is no Typer application.
        """
        app = locate_entry("commands", str(self.name)).load("commands")
        if not isinstance(app, typer.Typer):
            raise PluginError(f"command {self.name!r}: expected a typer.Typer, found {app!r}")
        command = typer.main.get_command(app)
        command.params = [one for one in command.params if one.name not in ("install_completion", "show_completion")]
        return command


def plugin_commands() -> dict[str, PluginCommand]:
    """Return what stands for the commands of all plugins, by name; packages' metadata alone are read."""
    return {
        entry.name: PluginCommand(entry.name, short_help=f"Added by {entry.value.partition('.')[0]}.")
        for entry in entries("commands")
    }
