"""From a record to its report."""

from api_services.reports.messages import GenerateReport
from api_services.reports.service import ReportCollaborators, generate_report
from api_services.settings import LangfuseSettings, OpenAISettings
from functions.platform import clients
from functions.platform.records import RecordContext


def connect() -> ReportCollaborators:
    """What writing reports works with."""
    return ReportCollaborators.of(
        clients.mongo_database(), clients.load_settings(OpenAISettings), clients.load_settings(LangfuseSettings)
    )


def write(collaborators: ReportCollaborators, message: GenerateReport, context: RecordContext) -> None:
    """Write the report, unless it is written."""
    generate_report(collaborators, message.interview_id, remaining_seconds=context.remaining_seconds)
