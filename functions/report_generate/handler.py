"""Writes the report of a settled interview with OpenAI."""

from api_services.queues import REPORT_GENERATE
from functions.platform.sqs_consumer import sqs_consumer
from functions.report_generate.write import connect, write

handler = sqs_consumer(REPORT_GENERATE, write, connect=connect)
