"""Values of the engine: unknowns, secrets, archives, JSON text."""

import json

from google.protobuf import struct_pb2

from local.aws.values import (
    UNKNOWN,
    camel,
    canonical_json,
    comparable,
    from_struct,
    has_unknown,
    pascal,
    to_struct,
)

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = {SIGNATURE: "1b47061264138c4ac30d75fd1eb44270", "value": "hush"}


def archive(digest: str, path: str) -> dict[str, str]:
    return {SIGNATURE: "0def7320c3a5731c473e5ecbe6d01bc7", "hash": digest, "path": path}


def test_whole_numbers_come_as_int_and_survive_the_way_back() -> None:
    values = {"timeout": 60, "threshold": 0.5, "enabled": True, "name": "a", "list": [1, {"x": 2}]}
    read = from_struct(to_struct(values))
    assert read == values
    assert isinstance(read["timeout"], int)
    assert read["enabled"] is True


def test_a_secret_is_unwrapped_at_every_depth() -> None:
    struct = struct_pb2.Struct()
    struct.update({"environment": {"variables": {"KEY": SECRET}}, "list": [SECRET]})
    assert from_struct(struct) == {"environment": {"variables": {"KEY": "hush"}}, "list": ["hush"]}


def test_an_output_without_a_value_is_unknown() -> None:
    struct = struct_pb2.Struct()
    struct.update({"arn": {SIGNATURE: "d0e6a833031e9bbcd3f4e8bde6ca49a4"}})
    assert from_struct(struct) == {"arn": UNKNOWN}


def test_unknowns_are_found_in_maps_and_lists() -> None:
    assert has_unknown({"a": [{"b": UNKNOWN}]})
    assert not has_unknown({"a": [{"b": "known"}], "c": None})


def test_text_order_and_spaces_of_a_json_document_vanish() -> None:
    one = json.dumps({"b": [1, 2], "a": {"y": 1, "x": "é"}}, indent=2)
    other = '{"a":{"x":"é","y":1},"b":[1,2]}'
    assert canonical_json(one) == other


def test_text_that_is_no_document_stays_as_it_is() -> None:
    assert canonical_json("not json {") == "not json {"
    assert canonical_json("12") == "12"
    assert canonical_json(UNKNOWN) == UNKNOWN


def test_two_archives_are_equal_by_hash_whatever_their_paths() -> None:
    assert comparable({"code": archive("h1", "/a/x.zip")}) == comparable({"code": archive("h1", "/b/x.zip")})
    assert comparable(archive("h1", "/a/x.zip")) != comparable(archive("h2", "/a/x.zip"))


def test_keys_are_respelled_at_every_depth_and_values_are_not() -> None:
    api = {"RoleArn": "Arn", "RetryPolicy": {"MaximumRetryAttempts": 2}, "Filters": [{"Pattern": "P"}]}
    engine = {"roleArn": "Arn", "retryPolicy": {"maximumRetryAttempts": 2}, "filters": [{"pattern": "P"}]}
    assert camel(api) == engine
    assert pascal(engine) == api
