"""The check of the rules finds each broken one, and changes nothing."""

from typing import Any

import pytest

from api_services.credits.invariants import MAX_VIOLATIONS, check_invariants
from tests.support.worlds import World

pytestmark = pytest.mark.integration


def test_a_world_that_keeps_the_rules_has_no_violation(world: World) -> None:
    assert check_invariants(world.database) == []
    world.grant(15)
    world.settle(world.completed(), world.completed(), world.failed())
    world.create()
    assert check_invariants(world.database) == []


@pytest.mark.parametrize(
    ("collection", "query", "change", "rule"),
    [
        ("creditLots", {}, {"$set": {"remaining": 0}}, "the ledger's sum is what the lots have left"),
        ("creditLots", {}, {"$set": {"remaining": -5}}, "a lot holds between nothing and its amount"),
        ("creditLots", {}, {"$inc": {"remaining": 1}}, "a lot's entries explain what it has left"),
        ("creditAccounts", {}, {"$set": {"overdraft": 3}}, "an overdraft is what was overdrawn and not repaid"),
        ("creditAccounts", {}, {"$set": {"overdraft": -3}}, "an overdraft is never negative"),
        ("ledgerEntries", {"amount": -10}, {"$set": {"amount": -11}}, "has the entries it says it consumed"),
        ("ledgerEntries", {"amount": -10}, {"$set": {"organizationId": "x"}}, "is charged to its organization"),
        ("ledgerEntries", {"amount": -10}, {"$set": {"interviewId": "x"}}, "a ledger entry belongs to an interview"),
        ("interviews", {}, {"$set": {"settledAt": None}}, "an unsettled interview is not charged"),
        ("interviews", {}, {"$set": {"credits.required": 11}}, "consumed what it requires"),
        ("interviews", {}, {"$set": {"retentionExpiresAt": None}}, "says how long it is kept"),
        ("interviews", {}, {"$set": {"status": "CREATED"}}, "a settled interview has ended"),
    ],
)
def test_every_broken_rule_is_found_and_nothing_is_changed(
    world: World, collection: str, query: dict[str, Any], change: dict[str, Any], rule: str
) -> None:
    world.grant(100)
    world.settle(world.completed())
    assert world.database[collection].update_one(query, change).matched_count == 1
    before = world.snapshot()
    found = [str(violation) for violation in check_invariants(world.database)]
    assert [each for each in found if rule in each] != []
    assert world.snapshot() == before


def test_what_it_finds_is_bounded(world: World) -> None:
    world.database["creditLots"].insert_many(
        {"_id": f"lot-{number}", "organizationId": f"org-{number}", "amount": 1, "remaining": 1}
        for number in range(MAX_VIOLATIONS + 20)
    )
    assert len(check_invariants(world.database)) == MAX_VIOLATIONS
