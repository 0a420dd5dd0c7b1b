"""Settles the credits of interviews that ended."""

from api_services.queues import INTERVIEW_COMPLETED
from functions.interview_completed.settle import connect, settle, settle_group
from functions.platform.sqs_consumer import sqs_consumer

handler = sqs_consumer(INTERVIEW_COMPLETED, settle, connect=connect, group_handler=settle_group)
