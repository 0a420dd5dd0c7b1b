"""The decisions of a torture run come from its seed alone."""

from collections import Counter

from benchmarks.torture.plan import HOT, ORGANIZATIONS, plan_of


def test_the_same_seed_gives_the_same_decisions_and_another_gives_others() -> None:
    assert plan_of(200, 7, consumers=5) == plan_of(200, 7, consumers=5)
    assert plan_of(200, 7, consumers=5).digest != plan_of(200, 8, consumers=5).digest


def test_half_of_the_interviews_belong_to_one_of_twenty_organizations() -> None:
    plan = plan_of(2_000, 1, consumers=5)
    owners = Counter(each.organization_id for each in plan.interviews)
    assert owners[HOT] == 1_000
    assert len(owners) == ORGANIZATIONS


def test_a_run_has_failures_duplicates_lost_messages_and_too_few_credits_somewhere() -> None:
    plan = plan_of(2_000, 1, consumers=5)
    assert 150 < sum(1 for each in plan.interviews if each.failure_code) < 350
    assert sum(each.duplicates for each in plan.interviews) > 500
    assert 10 < sum(1 for each in plan.interviews if each.enqueue_lost) < 90
    assert len(plan.mongo_kills) == 3
    granted, required = Counter[str](), Counter[str]()
    for grant in plan.grants:
        granted[grant.organization_id] += grant.amount
    for each in plan.interviews:
        required[each.organization_id] += 0 if each.failure_code else each.credits_required
    assert any(granted[name] < required[name] for name in required)
    assert any(granted[name] > required[name] for name in required)
