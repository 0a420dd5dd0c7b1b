"""Enqueues reports."""

from api_services.queues import REPORT_GENERATE
from api_services.reports.messages import GenerateReport
from api_services.sqs import QueueSender


def send_generate_report(sender: QueueSender, *, interview_id: str, delay_seconds: int = 0) -> None:
    """Enqueue the report of a settled interview; errors as `QueueSender.send`."""
    sender.send(REPORT_GENERATE, GenerateReport(interview_id=interview_id), delay_seconds=delay_seconds)
