"""Reading and resetting a stage's reports from here."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from api_services.interviews.repository import InterviewRepository
from api_services.mongo import MongoDatabase, connect
from api_services.queues import REPORT_GENERATE
from api_services.reports.models import Report
from api_services.reports.repository import ReportRepository
from api_services.reports.service import get_report, reset_report
from api_services.settings import MongoSettings
from api_services.sqs import SqsQueueSender

if TYPE_CHECKING:
    from cli.stage_access import StageAccess


def failed_reports(access: "StageAccess", *, limit: int) -> list[dict[str, Any]]:
    """Reports that wait for an operator."""
    with _database(access) as database:
        return [_shown(report) for report in ReportRepository(database).failed(limit=limit)]


def report_of(access: "StageAccess", interview_id: str) -> dict[str, Any]:
    """The report of one interview; `NotFoundError` for an unknown one."""
    with _database(access) as database:
        return _shown(get_report(ReportRepository(database), InterviewRepository(database), interview_id))


def reset(access: "StageAccess", interview_id: str) -> dict[str, Any]:
    """Reset and enqueue it; errors as `reset_report`."""
    from cli.queue.lib import url_of

    urls = {REPORT_GENERATE.url_env_key: url_of(access.outputs, REPORT_GENERATE.output, access.stage)}
    with _database(access) as database:
        sender = SqsQueueSender(urls, lambda: access.sqs)
        return _shown(reset_report(ReportRepository(database), InterviewRepository(database), sender, interview_id))


@contextmanager
def _database(access: "StageAccess") -> Generator[MongoDatabase]:
    from cli.stage_settings import stage_settings

    database = connect(stage_settings(access, MongoSettings), app_name="sophia-cli")
    try:
        yield database
    finally:
        database.client.close()


def _shown(report: Report) -> dict[str, Any]:
    return report.model_dump(mode="json", by_alias=True)
