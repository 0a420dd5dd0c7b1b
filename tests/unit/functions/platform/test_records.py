"""What stands in a record, and what may not: bodies, and attributes of any shape."""

import logging
from typing import Any

import pytest

from api_services import metrics
from tests.support.fakes import sqs_record
from tests.unit.functions.platform.consumers import Rig, completed

BAD_BODIES = {
    "": "body_not_json",
    "true": "body_not_an_object",
    "null": "body_not_an_object",
    "[]": "body_not_an_object",
    '"text"': "body_not_an_object",
    "17": "body_not_an_object",
    '{"a":1': "body_not_json",
    "not json": "body_not_json",
    "\ud800": "body_not_json",
    "[" * 50_000: "body_not_json",
    '{"interview_id": 5}': "schema_mismatch",
    "{}": "schema_mismatch",
    '{"type":"interview.completed","interviewId":"iv-1","organizationId":"o","endedAt":"2026-01-01T00:00:00"}': (
        "schema_mismatch"
    ),
    '["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"bkt-a","s3Key":"k1"}]': (
        "offloaded_payload_unsupported"
    ),
    '["com.amazon.sqs.javamessaging.MessageS3Pointer",{"s3BucketName":"bkt-a","s3Key":"k1"}]': (
        "offloaded_payload_unsupported"
    ),
    '{"s3BucketName":"not-ours","s3Key":"k1"}': "offloaded_payload_unsupported",
    '[{"s3BucketName":"bkt-a","s3Key":"k1"}]': "offloaded_payload_unsupported",
    "x" * 1_048_577: "body_too_large",
}


@pytest.mark.parametrize(("body", "code"), BAD_BODIES.items(), ids=lambda value: value[:24].encode("utf-8", "replace"))
def test_an_invalid_body_is_dropped_with_its_reason_and_touches_no_neighbour(
    body: str, code: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig()
    good = sqs_record("m-2", completed("good"))
    assert rig.call(sqs_record("m-1", body), good, sqs_record("m-3", body)) == []
    assert rig.handled == ["good"]
    kept = rig.failures.by_id()
    assert {kept["m-1"].code, kept["m-3"].code} == {code}
    assert kept["m-1"].outcome == "dropped"
    assert [line.__dict__["code"] for line in caplog.records if line.message == "consumer.record_dropped"] == [code] * 2
    assert f'"{metrics.RECORDS_DROPPED}": 2' in capsys.readouterr().out


@pytest.mark.parametrize("body", [None, 5, {"interviewId": "iv-1"}, b"{}", ["x"]])
def test_a_body_that_is_no_text_is_dropped(body: Any) -> None:
    rig = Rig()
    assert rig.call(sqs_record("m-1", body)) == []
    assert rig.failures.by_id()["m-1"].code == "body_not_text"


def test_a_body_is_in_no_log_line_no_metric_and_no_failure(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    rig = Rig()
    secret = "candidate-74c1"
    bodies = [f'{{"{secret}":1}}', f'"{secret}"', f"{secret}", f'{{"interviewId":"{secret}","{secret}":["{secret}"]}}']
    rig.call(*[sqs_record(f"m-{number}", body) for number, body in enumerate(bodies)])
    everything = [repr(line.__dict__) for line in caplog.records] + [capsys.readouterr().out, repr(rig.failures)]
    assert len(rig.failures.failures) == len(bodies)
    assert not any(secret in text for text in everything)


def test_a_flag_of_an_extended_client_names_the_reason_whatever_the_body() -> None:
    rig = Rig()
    attributes = {"ExtendedPayloadSize": {"stringValue": "700000", "dataType": "Number"}}
    rig.call(sqs_record("m-1", '{"bucket":"b"}', messageAttributes=attributes))
    assert rig.failures.by_id()["m-1"].code == "offloaded_payload_unsupported"


ODD_ATTRIBUTES: list[Any] = [
    None,
    {},
    [],
    "x",
    7,
    {"requestId": None},
    {"requestId": []},
    {"requestId": "text"},
    {"requestId": {"stringValue": None, "binaryValue": None, "dataType": "String"}},
    {"requestId": {"stringValue": 5}},
    {"requestId": {"stringValue": ""}},
    {"requestId": {"stringValue": "r" * 129}},
    {"trace": {"stringValue": "x", "binaryValue": None, "stringListValues": [], "dataType": "String"}},
]


@pytest.mark.parametrize("attributes", ODD_ATTRIBUTES)
def test_message_attributes_of_any_shape_are_fine(attributes: Any) -> None:
    rig = Rig()
    assert rig.call(sqs_record("m-1", completed("one"), messageAttributes=attributes)) == []
    assert rig.contexts[0].request_id is None
    assert rig.handled == ["one"]


@pytest.mark.parametrize(
    ("attributes", "count"),
    [
        (None, 1),
        ({}, 1),
        ([], 1),
        ({"ApproximateReceiveCount": None}, 1),
        ({"ApproximateReceiveCount": 3}, 1),
        ({"ApproximateReceiveCount": "-1"}, 1),
        ({"ApproximateReceiveCount": "0"}, 1),
        ({"ApproximateReceiveCount": "x"}, 1),
        ({"ApproximateReceiveCount": "²"}, 1),
        ({"ApproximateReceiveCount": "9" * 5000}, 1),
        ({"ApproximateReceiveCount": ["1"]}, 1),
        ({"ApproximateReceiveCount": "1"}, 1),
        ({"ApproximateReceiveCount": "7"}, 7),
        ({"ApproximateReceiveCount": "250"}, 250),
    ],
)
def test_the_receive_count_is_one_where_the_record_does_not_say(attributes: Any, count: int) -> None:
    rig = Rig()
    assert rig.call(sqs_record("m-1", completed("one"), attributes=attributes)) == []
    assert rig.contexts[0].receive_count == count


def test_a_record_without_any_attributes_is_handled() -> None:
    rig = Rig()
    assert rig.call({"messageId": "m-1", "body": completed("one").body()}) == []
    assert rig.handled == ["one"]
