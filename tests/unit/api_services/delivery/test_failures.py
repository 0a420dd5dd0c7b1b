from datetime import UTC, datetime

from api_services.delivery.failures import CAUSES_MAX, FRAMES_MAX, Failure, describe
from api_services.errors import AppError, DependencyError, NotFoundError


def caught(error: BaseException, depth: int = 0) -> BaseException:
    try:
        if depth:
            caught_below(error, depth)
        raise error
    except BaseException as exc:  # noqa: BLE001
        return exc


def caught_below(error: BaseException, depth: int) -> None:
    if depth:
        caught_below(error, depth - 1)
    raise error


def described(error: BaseException, code: str = "not_found", message_id: str = "m-1") -> Failure:
    return describe(
        error,
        message_id=message_id,
        queue="interview-completed",
        request_id="req-1",
        code=code,
        outcome="failed",
        receive_count=2,
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_a_failure_holds_places_and_classes_and_not_the_errors_text() -> None:
    failure = described(caught(NotFoundError("candidate-74c1 is not there", interview_id="candidate-74c1")))
    assert failure.error_class == "NotFoundError"
    assert failure.frames[0].split(":")[0] == "tests.unit.api_services.delivery.test_failures"
    assert failure.frames[0].endswith(" caught")
    assert "candidate-74c1" not in repr(failure)


def test_causes_are_named_and_bounded() -> None:
    error: BaseException = OSError("no route")
    for _ in range(CAUSES_MAX * 2):
        try:
            raise DependencyError("MongoDB did not answer.") from error
        except AppError as exc:
            error = exc
    assert described(error).error_class == " < ".join(["DependencyError"] * CAUSES_MAX)


def test_a_cause_that_leads_back_to_itself_ends() -> None:
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    assert described(first).error_class.startswith("ValueError < KeyError")


def test_a_deep_traceback_is_cut_to_its_innermost_frames() -> None:
    failure = described(caught(ValueError("x"), depth=100))
    assert len(failure.frames) == FRAMES_MAX
    assert failure.frames[-1].endswith(" caught_below")


def test_an_error_that_was_never_raised_has_no_frames() -> None:
    assert described(ValueError()).frames == ()


def test_equal_causes_have_equal_fingerprints_and_others_do_not() -> None:
    one = described(caught(NotFoundError("a")))
    again = described(caught(NotFoundError("b"), depth=3), message_id="m-2")
    assert one.fingerprint == again.fingerprint, "frames of the project alone count, and there are none here"
    assert one.fingerprint != described(caught(NotFoundError("a")), code="other").fingerprint
    assert one.fingerprint != described(caught(ValueError("a"))).fingerprint


def test_the_fingerprint_depends_on_the_projects_innermost_functions_but_not_on_their_lines() -> None:
    namespace = {"__name__": "api_services.invented.service"}
    exec("def settle(error):\n    raise error\n", namespace)  # noqa: S102
    moved = {"__name__": "api_services.invented.service"}
    exec("\n\n\ndef settle(error):\n    raise error\n", moved)  # noqa: S102
    other = {"__name__": "api_services.invented.service"}
    exec("def allocate(error):\n    raise error\n", other)  # noqa: S102

    def fingerprint(function: object) -> str:
        assert callable(function)
        try:
            function(ValueError())
        except ValueError as exc:
            return described(exc).fingerprint
        raise AssertionError("it did not raise")

    assert fingerprint(namespace["settle"]) == fingerprint(moved["settle"]) != fingerprint(other["allocate"])
