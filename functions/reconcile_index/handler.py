"""Compares the index with the approved documents and enqueues the difference."""

from api_services.schedules import RECONCILE_INDEX
from functions.platform.scheduled import scheduled
from functions.reconcile_index.reconcile import connect, reconcile

handler = scheduled(RECONCILE_INDEX, reconcile, connect=connect)
