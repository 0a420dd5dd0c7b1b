"""The gRPC surface of a Pulumi resource provider, over the table of rows."""
# ruff: noqa: ARG002, N802  (names and parameters of the generated gRPC base class)

import importlib.metadata
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeVar

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from local.aws import lifecycle
from local.aws.archives import ArchiveError
from local.aws.catalog import TABLE
from local.aws.checking import check
from local.aws.clients import EmulatorCall
from local.aws.configuration import (
    Configuration,
    ConfigurationRefusedError,
    read_configuration,
    require_answer,
)
from local.aws.diffing import Difference, diff
from local.aws.invokes import ANSWERS
from local.aws.lifecycle import PluginError
from local.aws.table import Row
from local.aws.values import from_struct, has_unknown, to_struct

log = logging.getLogger(__name__)

T = TypeVar("T")

OFFLINE_ONLY: Final = (
    "previews only: SOPHIA_AWS_OFFLINE is set and nothing is ever deployed, read or deleted; "
    "run the command without it against an account, or use the stage local"
)

_KINDS: Final = {
    "add": (provider_pb2.PropertyDiff.Kind.ADD, provider_pb2.PropertyDiff.Kind.ADD_REPLACE),
    "delete": (provider_pb2.PropertyDiff.Kind.DELETE, provider_pb2.PropertyDiff.Kind.DELETE_REPLACE),
    "update": (provider_pb2.PropertyDiff.Kind.UPDATE, provider_pb2.PropertyDiff.Kind.UPDATE_REPLACE),
}


class LocalAwsProvider(provider_pb2_grpc.ResourceProviderServicer):
    """Maps each resource type of the table to calls against the emulator; offline, to no call at all."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._configuration = Configuration()
        self._call: EmulatorCall | None = None

    # Configuration

    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: Any
    ) -> provider_pb2.ProviderHandshakeResponse:
        # The engine itself marks outputs as secret when it is told that we do not.
        return provider_pb2.ProviderHandshakeResponse()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: Any) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=importlib.metadata.version("pulumi-aws"))

    def CheckConfig(self, request: provider_pb2.CheckRequest, context: Any) -> provider_pb2.CheckResponse:
        try:
            require_answer(read_configuration(from_struct(request.news), self._environment))
        except ConfigurationRefusedError as error:
            return provider_pb2.CheckResponse(failures=[provider_pb2.CheckFailure(reason=str(error))])
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: provider_pb2.DiffRequest, context: Any) -> provider_pb2.DiffResponse:
        old, new = from_struct(request.old_inputs), from_struct(request.news)
        names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
        kinds = provider_pb2.DiffResponse.DiffChanges
        return provider_pb2.DiffResponse(
            changes=kinds.DIFF_SOME if names else kinds.DIFF_NONE,
            diffs=names,
            replaces=["region"] if "region" in names else [],
        )

    def Configure(self, request: provider_pb2.ConfigureRequest, context: Any) -> provider_pb2.ConfigureResponse:
        try:
            configuration = read_configuration(from_struct(request.args), self._environment)
            require_answer(configuration)
        except ConfigurationRefusedError as error:
            _refuse(context, str(error))
        self._configuration = configuration
        self._call = None if configuration.offline else EmulatorCall(configuration)
        return provider_pb2.ConfigureResponse(acceptSecrets=False, supportsPreview=True)

    # Resources

    def Check(self, request: provider_pb2.CheckRequest, context: Any) -> provider_pb2.CheckResponse:
        token, name = _token_and_name(request.urn)
        row, news = TABLE.get(token), from_struct(request.news)
        offline = self._configuration.offline
        if row is None:
            if not offline:
                return provider_pb2.CheckResponse(
                    failures=[provider_pb2.CheckFailure(reason=_unknown_type(token, name))]
                )
            return provider_pb2.CheckResponse(inputs=to_struct(news))
        checked = check(
            row,
            name,
            news,
            from_struct(request.olds),
            request.randomSeed,
            region=self._configuration.region,
            offline=offline,
        )
        return provider_pb2.CheckResponse(
            inputs=to_struct(checked.inputs),
            failures=[provider_pb2.CheckFailure(property=key, reason=reason) for key, reason in checked.failures],
        )

    def Diff(self, request: provider_pb2.DiffRequest, context: Any) -> provider_pb2.DiffResponse:
        token, _ = _token_and_name(request.urn)
        old_inputs = from_struct(request.old_inputs)
        difference = diff(
            TABLE.get(token),
            old_inputs,
            from_struct(request.olds),
            from_struct(request.news),
            self._configuration.default_tags,
        )
        return _diff_response(difference)

    def Create(self, request: provider_pb2.CreateRequest, context: Any) -> provider_pb2.CreateResponse:
        token, name = _token_and_name(request.urn)
        row, inputs = TABLE.get(token), from_struct(request.properties)
        tags = self._configuration.default_tags
        if request.preview:
            return provider_pb2.CreateResponse(properties=to_struct(lifecycle.planned(row, inputs, {}, tags)))
        call, row = self._ready(context, token, name, row)
        if has_unknown(inputs):
            _refuse(context, f"{token} '{name}': an input is still unknown; this is a fault of the engine")
        state = self._run(context, f"{token} '{name}'", lambda: lifecycle.create(call, row, inputs, tags))
        return provider_pb2.CreateResponse(id=state.id, properties=to_struct(state.outputs))

    def Read(self, request: provider_pb2.ReadRequest, context: Any) -> provider_pb2.ReadResponse:
        token, name = _token_and_name(request.urn)
        call, row = self._ready(context, token, name, TABLE.get(token))
        outputs, inputs = from_struct(request.properties), from_struct(request.inputs)
        tags = self._configuration.default_tags
        state = self._run(
            context, f"{token} '{name}'", lambda: lifecycle.read(call, row, request.id, outputs, inputs, tags)
        )
        if state is None:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(
            id=state.id, properties=to_struct(state.outputs), inputs=to_struct(state.inputs)
        )

    def Update(self, request: provider_pb2.UpdateRequest, context: Any) -> provider_pb2.UpdateResponse:
        token, name = _token_and_name(request.urn)
        row, olds, news = TABLE.get(token), from_struct(request.olds), from_struct(request.news)
        tags = self._configuration.default_tags
        if request.preview:
            return provider_pb2.UpdateResponse(properties=to_struct(lifecycle.planned(row, news, olds, tags)))
        call, row = self._ready(context, token, name, row)
        state = self._run(
            context, f"{token} '{name}'", lambda: lifecycle.update(call, row, request.id, olds, news, tags)
        )
        return provider_pb2.UpdateResponse(properties=to_struct(state.outputs))

    def Delete(self, request: provider_pb2.DeleteRequest, context: Any) -> empty_pb2.Empty:
        token, name = _token_and_name(request.urn)
        call, row = self._ready(context, token, name, TABLE.get(token))
        state = from_struct(request.properties)
        self._run(context, f"{token} '{name}'", lambda: lifecycle.delete(call, row, request.id, state))
        return empty_pb2.Empty()

    def Invoke(self, request: provider_pb2.InvokeRequest, context: Any) -> provider_pb2.InvokeResponse:
        answer = ANSWERS.get(request.tok)
        if answer is None:
            reason = f"{request.tok}: the local aws plugin does not answer this data source; see local/aws/invokes.py"
            return provider_pb2.InvokeResponse(failures=[provider_pb2.CheckFailure(reason=reason)])
        region = self._configuration.region
        found = self._run(context, request.tok, lambda: answer(self._call, region, from_struct(request.args)))
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(to_struct(found))
        return response

    def Cancel(self, request: empty_pb2.Empty, context: Any) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    # Support

    def _ready(self, context: Any, token: str, name: str, row: Row | None) -> tuple[EmulatorCall, Row]:
        if self._configuration.offline:
            _refuse(context, OFFLINE_ONLY)
        if row is None:
            _refuse(context, _unknown_type(token, name))
        if row.refusal:
            _refuse(context, f"{token} '{name}': {row.refusal}")
        if self._call is None:
            _refuse(context, "the aws plugin is not configured")
        return self._call, row

    def _run(self, context: Any, what: str, work: Callable[[], T]) -> T:
        """Do the work; any failure becomes one sentence that names the resource."""
        try:
            return work()
        except (PluginError, ArchiveError, ConfigurationRefusedError) as error:
            _refuse(context, f"{what}: {error}")
        except Exception as error:
            log.exception("%s", what)
            _refuse(context, f"{what}: {error or type(error).__name__}")


def _refuse(context: Any, message: str) -> NoReturn:
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, message)
    raise AssertionError("unreachable: abort raises")


def _token_and_name(urn: str) -> tuple[str, str]:
    """Type token and logical name of `urn:pulumi:<stack>::<project>::<parent types>$<type>::<name>`."""
    parts = urn.split("::", 3)
    return parts[2].rsplit("$", 1)[-1], parts[3]


def _unknown_type(token: str, name: str) -> str:
    return f"the local stage has no row for the resource type {token} ('{name}'); add one in local/aws/rows"


def _diff_response(difference: Difference) -> provider_pb2.DiffResponse:
    kinds = provider_pb2.DiffResponse.DiffChanges
    return provider_pb2.DiffResponse(
        changes=kinds.DIFF_SOME if difference.changes else kinds.DIFF_NONE,
        diffs=sorted(difference.changes),
        replaces=difference.replaces,
        deleteBeforeReplace=difference.delete_before_replace,
        hasDetailedDiff=True,
        detailedDiff={
            name: provider_pb2.PropertyDiff(kind=_KINDS[change.kind][change.replaces], inputDiff=True)
            for name, change in difference.changes.items()
        },
    )
