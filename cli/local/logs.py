"""Log lines of the local stage: files of its services, CloudWatch streams of its functions."""

import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from api_services.errors import NotFoundError
from api_services.function_spec import physical_name
from api_services.queues import QUEUES
from api_services.schedules import SCHEDULES
from api_services.stages import LOCAL_STAGE
from local import clients
from local.run_state import read_run_state
from local.services import EMULATOR
from local.stage import LocalStage

if TYPE_CHECKING:
    from types_boto3_logs import CloudWatchLogsClient

_POLL_SECONDS = 0.3
_TAIL_BYTES = 1_000_000
_FUNCTION_NAME_MAX = 64


def log_lines(stage: LocalStage, name: str | None, *, last: int, follow: bool) -> Generator[str]:
    """The last lines of one log, or of all, then with `follow` what is added. Raises `NotFoundError`.

    With more than one log, each line begins with its log's name.
    """
    files, functions = log_names(stage)
    if name is not None:
        if name not in (*files, *functions):
            known = ", ".join(sorted([*files, *functions]))
            raise NotFoundError(
                f"no log '{name}'; there are {known or 'none yet: run `./sophia up`'}", code="unknown_log"
            )
        files, functions = {key: value for key, value in files.items() if key == name}, functions & {name}
    tails = [_File(key, path) for key, path in sorted(files.items())]
    if functions and stage.is_running(read_run_state(stage.paths), EMULATOR):
        client = clients.logs(stage.running().endpoint_url)
        tails += [_Function(key, client) for key in sorted(functions)]
    width = max((len(tail.name) for tail in tails), default=0) if len(tails) > 1 else 0
    for tail in tails:
        lines = tail.read()
        yield from _labelled(tail, lines[-last:] if last else [], width)
    while follow:
        time.sleep(_POLL_SECONDS)
        for tail in tails:
            yield from _labelled(tail, tail.read(), width)


def log_names(stage: LocalStage) -> tuple[dict[str, Path], set[str]]:
    """Log files by service, and the names of functions."""
    files = {path.stem: path for path in stage.paths.log_dir.glob("*.log")}
    return files, {spec.name for spec in (*QUEUES, *SCHEDULES)}


class _Tail:
    """Gives the lines that were added since it was last read."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self) -> list[str]:
        raise AssertionError("a tail reads its own kind of log")


class _File(_Tail):
    def __init__(self, name: str, path: Path) -> None:
        super().__init__(name)
        self._path = path
        self._offset = max(0, path.stat().st_size - _TAIL_BYTES)

    def read(self) -> list[str]:
        if not self._path.exists():
            return []
        with self._path.open("rb") as log:
            if self._path.stat().st_size < self._offset:  # begun anew by another `up`
                self._offset = 0
            log.seek(self._offset)
            complete, newline, _ = log.read().rpartition(b"\n")
        self._offset += len(complete) + len(newline)
        return complete.decode(errors="replace").splitlines()


class _Function(_Tail):
    def __init__(self, name: str, client: "CloudWatchLogsClient") -> None:
        super().__init__(name)
        self._client = client
        self._group = f"/aws/lambda/{physical_name(LOCAL_STAGE, name, limit=_FUNCTION_NAME_MAX)}"
        self._seen: set[str] = set()
        self._since_ms = 0

    def read(self) -> list[str]:
        try:
            pages = self._client.get_paginator("filter_log_events").paginate(
                logGroupName=self._group, startTime=self._since_ms
            )
            events = [event for page in pages for event in page["events"]]
        except self._client.exceptions.ResourceNotFoundException:
            return []  # the function never ran
        fresh = [event for event in events if event.get("eventId", "") not in self._seen]
        for event in fresh:
            self._since_ms = max(self._since_ms, event.get("timestamp", 0))
        self._seen |= {event.get("eventId", "") for event in fresh}
        return [event.get("message", "").rstrip() for event in fresh]


def _labelled(tail: _Tail, lines: list[str], width: int) -> Iterator[str]:
    for line in lines:
        yield f"{tail.name:<{width}}  {line}" if width else line
