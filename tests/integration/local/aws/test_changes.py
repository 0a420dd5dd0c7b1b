"""Changes, drift and refusals, through the real engine and the real emulator."""

import socket
import threading
from typing import Any

import pytest

from local.aws.archives import zip_bytes
from local.aws.clients import EmulatorCall
from local.aws.configuration import Configuration
from local.emulator import Emulator
from tests.integration.local.aws.conftest import MakeStack
from tests.integration.local.aws.engine import Stack
from tests.integration.local.aws.test_every_type import client

pytestmark = pytest.mark.integration

UP = ("up", "--yes", "--skip-preview")
REFRESH = ("refresh", "--yes", "--skip-preview")


def visibility(emulator: Emulator, stack: Stack) -> str:
    sqs = client(emulator, "sqs")
    names = ["VisibilityTimeout"]
    return sqs.get_queue_attributes(QueueUrl=stack.outputs()["queueUrl"], AttributeNames=names)["Attributes"][names[0]]


@pytest.fixture
def stack(make_stack: MakeStack) -> Stack:
    made = make_stack("small")
    made.config["rows:queueName"] = "rows-first"
    return made


def test_inputs_change_in_place_and_a_new_name_replaces(stack: Stack, emulator: Emulator) -> None:
    stack.succeeds(*UP)
    first = stack.outputs()

    stack.config["rows:visibility"] = 90
    assert "1 updated" in stack.succeeds(*UP)
    assert stack.outputs() == first, "the same queue"
    assert visibility(emulator, stack) == "90"

    functions = client(emulator, "lambda")
    before = functions.get_function(FunctionName=first["functionName"])["Configuration"]["CodeSha256"]
    stack.config["rows:answer"] = "2"
    assert "1 updated" in stack.succeeds(*UP)
    assert functions.get_function(FunctionName=first["functionName"])["Configuration"]["CodeSha256"] != before

    stack.config["rows:queueName"] = "rows-second"
    assert "2 replaced" in stack.succeeds(*UP), "the queue, and the mapping that reads it"
    assert [url.rsplit("/", 1)[1] for url in client(emulator, "sqs").list_queues()["QueueUrls"]] == ["rows-second"]
    stack.succeeds("preview", "--expect-no-changes")


def test_what_someone_changed_by_hand_is_seen_and_put_right(stack: Stack, emulator: Emulator) -> None:
    stack.succeeds(*UP)
    client(emulator, "sqs").set_queue_attributes(
        QueueUrl=stack.outputs()["queueUrl"], Attributes={"VisibilityTimeout": "99", "DelaySeconds": "7"}
    )
    name = stack.outputs()["functionName"]
    functions = client(emulator, "lambda")
    package = functions.get_function(FunctionName=name)["Configuration"]["CodeSha256"]
    functions.update_function_code(FunctionName=name, ZipFile=zip_bytes({"assets": {"other.py": {"text": "x = 1"}}}))
    assert stack.run(*REFRESH, "--expect-no-changes").exit_code != 0
    assert "2 updated" in stack.succeeds(*UP)
    assert functions.get_function(FunctionName=name)["Configuration"]["CodeSha256"] == package
    assert visibility(emulator, stack) == "60"
    stack.succeeds(*REFRESH, "--expect-no-changes")


def test_what_someone_deleted_by_hand_is_made_again(stack: Stack, emulator: Emulator) -> None:
    stack.succeeds(*UP)
    client(emulator, "sqs").delete_queue(QueueUrl=stack.outputs()["queueUrl"])
    stack.succeeds(*REFRESH)
    assert "1 created" in stack.succeeds(*UP)
    assert visibility(emulator, stack) == "60"


@pytest.mark.parametrize(
    ("switch", "said"),
    [
        ("unknownInput", "the local stage does not act on the input 'namePrefix' of aws:sqs/queue:Queue 'odd'"),
        ("unknownType", "the local stage has no row for the resource type aws:ecs/cluster:Cluster ('cluster')"),
        ("secretVersion", "write it with `./sophia secrets set`"),
    ],
)
def test_what_has_no_meaning_here_is_an_error_at_preview(stack: Stack, switch: str, said: str) -> None:
    stack.config[f"rows:{switch}"] = True
    done = stack.run("preview")
    assert done.exit_code != 0
    assert said in " ".join(done.output.split())


class Trap:
    """A port that notes who connects: the proxy of a process that must call nobody."""

    def __init__(self) -> None:
        self.callers: list[Any] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, caller = self._socket.accept()
            except OSError:
                return
            self.callers.append(caller)
            connection.close()

    def close(self) -> None:
        self._socket.close()


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("https://sqs.eu-west-1.amazonaws.com", "speaks with an emulator on this machine only"),
        ("", "has no endpoint; set AWS_ENDPOINT_URL"),
        ("http://127.0.0.1:9", "emulator not reachable at http://127.0.0.1:9"),
    ],
)
def test_an_emulator_elsewhere_or_nowhere_is_one_sentence_and_no_call(stack: Stack, endpoint: str, said: str) -> None:
    trap = Trap()
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"), trap.url)
    done = stack.run("preview", environ={"AWS_ENDPOINT_URL": endpoint, **proxies})
    trap.close()
    assert done.exit_code != 0
    assert said in " ".join(done.output.split())
    assert trap.callers == []


def test_a_proxy_of_the_users_is_not_asked(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    trap = Trap()
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, trap.url)
    call = EmulatorCall(Configuration(endpoint=emulator.endpoint_url))
    assert call.account_id == "000000000000"
    trap.close()
    assert trap.callers == []


def test_offline_any_type_is_previewed_and_nothing_is_done(stack: Stack, emulator: Emulator) -> None:
    stack.config.update({"rows:unknownInput": True, "rows:unknownType": True})
    offline = {"SOPHIA_AWS_OFFLINE": "1", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    previewed = stack.run("preview", environ=offline)
    assert previewed.exit_code == 0, previewed.output
    assert "7 to create" in previewed.output
    done = stack.run(*UP, environ=offline)
    assert done.exit_code != 0
    assert "previews only" in done.output
    assert client(emulator, "sqs").list_queues().get("QueueUrls", []) == []
