"""Sends the message that an interview ended."""

from datetime import datetime

from api_services.interviews.messages import InterviewCompleted, InterviewFailed
from api_services.queues import INTERVIEW_COMPLETED
from api_services.sqs import QueueSender


def send_interview_completed(
    sender: QueueSender, *, interview_id: str, organization_id: str, ended_at: datetime
) -> None:
    """Enqueue the settlement of a completed interview; errors as `QueueSender.send`."""
    message = InterviewCompleted(interview_id=interview_id, organization_id=organization_id, ended_at=ended_at)
    sender.send(INTERVIEW_COMPLETED, message)


def send_interview_failed(
    sender: QueueSender, *, interview_id: str, organization_id: str, ended_at: datetime, failure_code: str
) -> None:
    """Enqueue the settlement of an interview that broke off; errors as `QueueSender.send`."""
    message = InterviewFailed(
        interview_id=interview_id, organization_id=organization_id, ended_at=ended_at, failure_code=failure_code
    )
    sender.send(INTERVIEW_COMPLETED, message)
