"""The language host runs plugins that are written in Python, as the official one does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pulumi.runtime.proto import language_pb2

from toolchain.language_host import ProgramHost


class Context:
    """What a plugin's caller may do: go away."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []

    def add_callback(self, callback: Callable[[], None]) -> bool:
        self.callbacks.append(callback)
        return True


def run(folder: Path, context: Context) -> list[Any]:
    request = language_pb2.RunPluginRequest(
        pwd=str(folder),
        args=["one", "two"],
        env=["GREETING=hello"],
        info=language_pb2.ProgramInfo(program_directory=str(folder)),
    )
    return list(ProgramHost().RunPlugin(request, context))


def test_a_plugin_gets_arguments_folder_and_environment_and_its_output_and_exit_code_come_back(tmp_path: Path) -> None:
    (tmp_path / "__main__.py").write_text(
        "import os, sys\n"
        "print(os.environ['GREETING'], sys.argv[1:], os.getcwd() == sys.argv[0].rpartition('/')[0])\n"
        "sys.exit(3)\n"
    )
    *lines, last = run(tmp_path, Context())
    assert [line.stdout for line in lines] == [b"hello ['one', 'two'] True\n"]
    assert last.exitcode == 3


def test_a_plugin_whose_caller_goes_away_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "__main__.py").write_text("import time\nprint('ready')\ntime.sleep(60)\n")
    context = Context()
    request = language_pb2.RunPluginRequest(info=language_pb2.ProgramInfo(program_directory=str(tmp_path)))
    responses = ProgramHost().RunPlugin(request, context)
    assert next(responses).stdout == b"ready\n"
    for callback in context.callbacks:
        callback()
    assert [response.exitcode for response in responses] == [-9]
