"""Log lines and metrics are JSON that CloudWatch reads as it is."""

import json
import logging

import pytest

from api_services.logs import JsonFormatter, configure_logging
from api_services.metrics import NAMESPACE, RECORDS_DROPPED, emit
from api_services.request_context import current_request_id, new_request_id, request_context


def formatted(**extra: object) -> dict[str, object]:
    record = logging.makeLogRecord({"name": "consumer", "levelname": "INFO", "msg": "consumer.record_failed", **extra})
    return json.loads(JsonFormatter().format(record))


def test_a_line_has_the_event_its_fields_and_the_request_id_in_force() -> None:
    with request_context("req-1"):
        line = formatted(messageId="m-1")
    assert (line["event"], line["messageId"], line["requestId"]) == ("consumer.record_failed", "m-1", "req-1")
    assert "requestId" not in formatted()


def test_an_exception_becomes_its_class_and_traceback_on_the_same_line() -> None:
    try:
        raise ValueError("broken")
    except ValueError as exc:
        line = formatted(exc_info=(type(exc), exc, exc.__traceback__))
    assert line["errorClass"] == "ValueError"
    assert "broken" in str(line["traceback"])


def test_configuring_twice_writes_each_line_once(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    try:
        configure_logging()
        configure_logging()
        logging.getLogger("x").info("once")
    finally:
        root.handlers[:], root.level = before
    assert capsys.readouterr().out.count('"once"') == 1


def test_contexts_nest_and_restore_what_was_in_force() -> None:
    with request_context("outer"):
        with request_context("inner"):
            assert current_request_id() == "inner"
        assert current_request_id() == "outer"
    assert current_request_id() is None
    assert new_request_id() != new_request_id()


def test_a_metric_is_one_line_of_the_embedded_format(capsys: pytest.CaptureFixture[str]) -> None:
    emit(RECORDS_DROPPED, queue="ingest")
    line = json.loads(capsys.readouterr().out)
    assert (line["RecordsDropped"], line["queue"]) == (1, "ingest")
    assert line["_aws"]["CloudWatchMetrics"] == [
        {
            "Namespace": NAMESPACE,
            "Dimensions": [["stage", "queue"]],
            "Metrics": [{"Name": "RecordsDropped", "Unit": "Count"}],
        }
    ]
