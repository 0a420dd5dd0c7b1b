import socket
from pathlib import Path

import pytest

from api_services.errors import ConfigurationError
from api_services.queues import API, queues_sent_by
from local import services
from local.services import api_environ, choose_port, fingerprint
from toolchain import processes


def listener() -> socket.socket:
    server = socket.socket()
    server.bind((processes.LOOPBACK, 0))
    server.listen()
    return server


def test_the_port_used_last_is_used_again() -> None:
    port = processes.free_port()
    assert choose_port("api", {}, port, []) == port


def test_a_port_that_someone_else_took_is_given_up() -> None:
    with listener() as server:
        port = server.getsockname()[1]
        assert choose_port("api", {}, port, []) != port


def test_a_port_of_another_service_of_the_stage_is_not_chosen() -> None:
    port = processes.free_port()
    assert choose_port("api", {}, port, [port]) != port


def test_a_configured_port_that_is_taken_is_an_error_with_its_remedy() -> None:
    with listener() as server:
        port = server.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"port {port} of SOPHIA_API_PORT is taken") as caught:
            choose_port("api", {"SOPHIA_API_PORT": str(port)}, None, [])
    assert caught.value.code == "port_taken"


@pytest.mark.parametrize("value", ["0", "65536", "http", "-1"])
def test_a_configured_port_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(ConfigurationError, match="set it to a port from 1 to 65535"):
        choose_port("api", {"SOPHIA_API_PORT": value}, None, [])


def test_a_service_is_started_anew_when_its_command_environment_or_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "ROOT", tmp_path)
    source = tmp_path / "package"
    source.mkdir()
    (source / "a.py").write_text("1")
    first = fingerprint(["x"], {"A": "1"}, source)
    assert fingerprint(["x"], {"A": "1"}, source) == first
    (source / "__pycache__").mkdir()
    (source / "__pycache__" / "a.pyc").write_text("2")
    assert fingerprint(["x"], {"A": "1"}, source) == first, "bytecode is no change"
    assert fingerprint(["y"], {"A": "1"}, source) != first
    assert fingerprint(["x"], {"A": "2"}, source) != first
    (source / "a.py").write_text("2")
    assert fingerprint(["x"], {"A": "1"}, source) != first


def test_the_api_gets_every_queue_it_sends_to_its_secrets_by_arn_and_its_settings() -> None:
    outputs = {spec.output: f"http://127.0.0.1:1/{spec.name}" for spec in queues_sent_by(API)}
    config = {"sophia:openaiBaseUrl": "http://127.0.0.1:2/v1", "sophia:logRetentionDays": 1}
    arns = {"mongo-uri": "arn:m", "api-keys": "arn:k", "langfuse-secret-key": "arn:l"}
    environ = api_environ("http://127.0.0.1:3", config, outputs, arns)
    assert {spec.url_env_key: outputs[spec.output] for spec in queues_sent_by(API)}.items() <= environ.items()
    assert environ["MONGO_URI_SECRET_ARN"] == "arn:m"
    assert environ["API_KEYS_SECRET_ARN"] == "arn:k"
    assert environ["OPENAI_BASE_URL"] == "http://127.0.0.1:2/v1"
    assert environ["AWS_ENDPOINT_URL"] == "http://127.0.0.1:3"
    assert "MONGO_URI" not in environ
    assert "LOG_RETENTION_DAYS" not in environ
