"""The command line: `main` runs one command."""

from iqrl.cli.main import main

__all__ = ["main"]
