import os
from pathlib import Path

from toolchain import processes
from toolchain.processes import ProcessId


def test_this_process_is_recognised_and_its_number_with_another_start_is_not() -> None:
    me = processes.identify(os.getpid())
    assert me is not None
    assert processes.is_running(me)
    assert not processes.is_running(ProcessId(me.pid, "long ago"))


def test_a_process_that_is_not_ours_is_never_signalled() -> None:
    processes.stop([ProcessId(os.getpid(), "long ago")], grace_seconds=0.1)
    assert processes.identify(os.getpid()) is not None


def test_a_number_nobody_has_is_no_process() -> None:
    assert processes.identify(2**22 + 1) is None


def test_free_ports_avoid_those_spoken_for() -> None:
    port = processes.free_port()
    assert processes.port_is_free(port)
    assert processes.free_port(besides=frozenset({port})) != port


def test_the_end_of_a_log_fits_on_one_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert processes.log_tail(log) == "(no log)"
    log.write_text("")
    assert processes.log_tail(log) == "(empty)"
    log.write_text("a\n\nb\nc\n")
    assert processes.log_tail(log, lines=2) == "b | c"
