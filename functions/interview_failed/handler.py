"""Settles interviews that failed, should they get a queue of their own."""

from api_services.queues import INTERVIEW_FAILED
from functions.interview_completed.settle import connect, settle, settle_group
from functions.platform.sqs_consumer import sqs_consumer

handler = sqs_consumer(INTERVIEW_FAILED, settle, connect=connect, group_handler=settle_group)
