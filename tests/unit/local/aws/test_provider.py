"""The gRPC surface: what the engine is told, without an engine."""

from typing import Any, NoReturn

import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from local.aws.invokes import OFFLINE_ACCOUNT
from local.aws.provider import LocalAwsProvider
from local.aws.values import UNKNOWN, from_struct, to_struct

QUEUE = "urn:pulumi:local::sophia::sophia:sqs:QueuePair$aws:sqs/queue:Queue::jobs-queue"
CLUSTER = "urn:pulumi:dev::sophia::aws:ecs/cluster:Cluster::api"
Kinds = provider_pb2.PropertyDiff.Kind


class RefusedError(Exception):
    """What `abort` raises."""


class Context:
    """The part of a gRPC context that the provider uses."""

    def abort(self, _code: Any, message: str) -> NoReturn:
        raise RefusedError(message)


@pytest.fixture
def offline() -> LocalAwsProvider:
    provider = LocalAwsProvider({"SOPHIA_AWS_OFFLINE": "1"})
    provider.Configure(provider_pb2.ConfigureRequest(args=to_struct({"region": "eu-west-1"})), Context())
    return provider


def test_configure_refuses_an_endpoint_elsewhere() -> None:
    provider = LocalAwsProvider({"AWS_ENDPOINT_URL": "https://sqs.eu-west-1.amazonaws.com"})
    with pytest.raises(RefusedError, match="this machine only"):
        provider.Configure(provider_pb2.ConfigureRequest(), Context())
    failures = provider.CheckConfig(provider_pb2.CheckRequest(), Context()).failures
    assert "this machine only" in failures[0].reason


def test_nothing_is_done_before_configure() -> None:
    provider = LocalAwsProvider({})
    with pytest.raises(RefusedError, match="not configured"):
        provider.Delete(provider_pb2.DeleteRequest(id="x", urn=QUEUE), Context())


def test_an_unknown_type_is_refused_at_preview_and_at_create() -> None:
    provider = LocalAwsProvider({})
    checked = provider.Check(provider_pb2.CheckRequest(urn=CLUSTER), Context())
    assert "aws:ecs/cluster:Cluster" in checked.failures[0].reason
    with pytest.raises(RefusedError, match="aws:ecs/cluster:Cluster"):
        provider.Create(provider_pb2.CreateRequest(urn=CLUSTER), Context())


def test_an_unknown_type_is_previewed_offline(offline: LocalAwsProvider) -> None:
    inputs = to_struct({"name": "api", "settings": UNKNOWN})
    checked = offline.Check(provider_pb2.CheckRequest(urn=CLUSTER, news=inputs), Context())
    assert checked.inputs == inputs
    assert not checked.failures
    created = offline.Create(provider_pb2.CreateRequest(urn=CLUSTER, properties=inputs, preview=True), Context())
    assert created.properties == inputs
    assert created.id == ""


@pytest.mark.parametrize("urn", [QUEUE, CLUSTER])
def test_offline_nothing_is_created_read_changed_or_deleted(offline: LocalAwsProvider, urn: str) -> None:
    for act in (
        lambda: offline.Create(provider_pb2.CreateRequest(urn=urn), Context()),
        lambda: offline.Read(provider_pb2.ReadRequest(urn=urn, id="x"), Context()),
        lambda: offline.Update(provider_pb2.UpdateRequest(urn=urn, id="x"), Context()),
        lambda: offline.Delete(provider_pb2.DeleteRequest(urn=urn, id="x"), Context()),
    ):
        with pytest.raises(RefusedError, match="previews only"):
            act()


def test_a_previewed_queue_has_its_name_and_no_url(offline: LocalAwsProvider) -> None:
    request = provider_pb2.CheckRequest(urn=QUEUE, news=to_struct({"delaySeconds": 1}), randomSeed=b"seed")
    inputs = offline.Check(request, Context()).inputs
    created = offline.Create(provider_pb2.CreateRequest(urn=QUEUE, properties=inputs, preview=True), Context())
    outputs = from_struct(created.properties)
    assert outputs["name"].startswith("jobs-queue-")
    assert "url" not in outputs


def test_a_detailed_diff_says_which_input_replaces() -> None:
    response = LocalAwsProvider({}).Diff(
        provider_pb2.DiffRequest(
            urn=QUEUE,
            old_inputs=to_struct({"name": "a", "visibilityTimeoutSeconds": 30}),
            news=to_struct({"name": "b", "visibilityTimeoutSeconds": 60}),
        ),
        Context(),
    )
    assert response.changes == provider_pb2.DiffResponse.DIFF_SOME
    assert list(response.replaces) == ["name"]
    assert sorted(response.diffs) == ["name", "visibilityTimeoutSeconds"]
    assert response.hasDetailedDiff
    assert response.detailedDiff["name"].kind == Kinds.UPDATE_REPLACE
    assert response.detailedDiff["visibilityTimeoutSeconds"].kind == Kinds.UPDATE
    assert not response.deleteBeforeReplace


def test_the_provider_is_replaced_by_another_region_only() -> None:
    def config_diff(old: dict[str, Any], new: dict[str, Any]) -> provider_pb2.DiffResponse:
        request = provider_pb2.DiffRequest(old_inputs=to_struct(old), news=to_struct(new))
        return LocalAwsProvider({}).DiffConfig(request, Context())

    assert config_diff({"region": "a"}, {"region": "a"}).changes == provider_pb2.DiffResponse.DIFF_NONE
    assert list(config_diff({"region": "a"}, {"region": "b"}).replaces) == ["region"]
    assert list(config_diff({"endpoints": "a"}, {"endpoints": "b"}).replaces) == []


def test_a_data_source_that_is_not_known_is_named(offline: LocalAwsProvider) -> None:
    response = offline.Invoke(provider_pb2.InvokeRequest(tok="aws:ec2/getAmi:getAmi"), Context())
    assert "aws:ec2/getAmi:getAmi" in response.failures[0].reason


def test_a_data_source_is_answered_offline(offline: LocalAwsProvider) -> None:
    response = offline.Invoke(
        provider_pb2.InvokeRequest(tok="aws:index/getCallerIdentity:getCallerIdentity"), Context()
    )
    assert from_struct(getattr(response, "return"))["accountId"] == OFFLINE_ACCOUNT


def test_the_plugin_has_the_version_of_the_installed_sdk(offline: LocalAwsProvider) -> None:
    version = offline.GetPluginInfo(empty_pb2.Empty(), Context()).version
    assert version.split(".")[0] == "7", "the engine refuses a plugin older than the SDK asks for"
