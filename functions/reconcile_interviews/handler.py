"""Enqueues interviews that ended but were not settled, and reports that nobody writes."""

from api_services.schedules import RECONCILE_INTERVIEWS
from functions.platform.scheduled import scheduled
from functions.reconcile_interviews.reconcile import connect, reconcile

handler = scheduled(RECONCILE_INTERVIEWS, reconcile, connect=connect)
