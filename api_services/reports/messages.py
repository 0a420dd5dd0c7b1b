"""The message that asks for an interview's report."""

from typing import Literal

from api_services.messages import Identifier, Message


class GenerateReport(Message):
    """Write the report of a settled, completed interview."""

    type: Literal["report.generate"] = "report.generate"
    interview_id: Identifier
