"""The `sophia` command line: one module of commands per group, imported only when it is called."""

import importlib
import signal
import sys
from collections.abc import Mapping, Sequence
from types import FrameType

import typer

from cli.errors import exit_code_of

COMMANDS: Mapping[str, str] = {
    "up": "cli.local.commands",
    "down": "cli.local.commands",
    "status": "cli.local.commands",
    "demo": "cli.demo.commands",
    "logs": "cli.local.commands",
    "pulumi": "cli.pulumi.commands",
    "env": "cli.pulumi.commands",
    "test": "cli.test.commands",
    "lock": "cli.test.commands",
    "queue": "cli.queue.commands",
    "dlq": "cli.dlq.commands",
    "secrets": "cli.secrets.commands",
    "verify": "cli.verify.commands",
    "search": "cli.search.commands",
    "reconcile": "cli.reconcile.commands",
    "docs": "cli.docs.commands",
    "package": "cli.package.commands",
    "bench": "cli.bench.commands",
    "torture": "cli.torture.commands",
    "reports": "cli.reports.commands",
    "ci": "cli.ci.commands",
}
"""First word of a command line, and the module whose `app` answers to it.

An `app` with a name is a group of commands (`sophia dlq list`); one without adds its commands at the top.
"""


def build(modules: Sequence[str]) -> typer.Typer:
    """One application of the `app` of each module."""
    root = typer.Typer(
        name="sophia",
        help="Sophia's asynchronous processing: the local stage, its checks, and an operator's tools.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    root.callback()(_root)
    for module in modules:
        root.add_typer(importlib.import_module(module).app)
    return root


def run(arguments: Sequence[str]) -> int:
    """Run one command line and give its exit code."""
    first = next((argument for argument in arguments if not argument.startswith("-")), None)
    named = COMMANDS.get(first) if first is not None else None
    modules = [named] if named is not None else list(dict.fromkeys(COMMANDS.values()))

    def command() -> int:
        try:
            build(modules)(args=list(arguments), prog_name="sophia")
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        return 0

    return exit_code_of(command)


def _root() -> None:
    """Sophia's asynchronous processing: the local stage, its checks, and an operator's tools."""


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    """Let a command that receives SIGTERM stop what it started, as it does on Ctrl-C."""
    raise SystemExit(128 + number)


def main() -> None:
    """Entry of `python -m cli`."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, _end)
    sys.exit(run(sys.argv[1:]))
