"""Every random decision of a run, made before it begins: the same seed and size give the same plan."""

import hashlib
import random
from dataclasses import asdict, dataclass, replace
from typing import Final

ORGANIZATIONS: Final = 20
HOT: Final = "org-00"
FAILURE_CODES: Final = ("no_show", "candidate_left", "connection_lost")
WORDS: Final = tuple(
    "queue deadlock retry index migration rollback review incident cache shard consumer ledger credit transaction "  # noqa: SIM905
    "timeout release metric alert pipeline contract schema latency interview candidate".split()
)


@dataclass(frozen=True, slots=True)
class PlannedInterview:
    """What happens to one interview. `enqueue_lost`: its process dies between the status and the message."""

    interview_id: str
    organization_id: str
    credits_required: int
    failure_code: str | None
    words: str
    duplicates: int
    enqueue_lost: bool
    gap_seconds: float


@dataclass(frozen=True, slots=True)
class PlannedGrant:
    """A grant made before interview number `before`, repeated `repeats` times under its key."""

    before: int
    organization_id: str
    amount: int
    key: str
    expires_in_seconds: float | None
    repeats: int


@dataclass(frozen=True, slots=True)
class Kill:
    """After `gap_seconds`, the consumer of that number dies."""

    gap_seconds: float
    consumer: int


@dataclass(frozen=True, slots=True)
class MongoKill:
    """When `progress` of the interviews are settled and reported, MongoDB dies for `down_seconds`."""

    progress: float
    down_seconds: float


@dataclass(frozen=True, slots=True)
class Plan:
    """All decisions of a run."""

    seed: int
    interviews: list[PlannedInterview]
    grants: list[PlannedGrant]
    kills: list[Kill]
    mongo_kills: list[MongoKill]
    fault_seeds: dict[str, int]
    unknown_interviews: int
    bad_bodies: int
    digest: str = ""


def plan_of(interviews: int, seed: int, *, consumers: int) -> Plan:
    """The decisions for that many interviews; each kind has a stream of its own, so that one does not shift another."""
    plan = Plan(
        seed=seed,
        interviews=_interviews(interviews, _stream(seed, "interviews")),
        grants=_grants(interviews, _stream(seed, "grants")),
        kills=_kills(_stream(seed, "kills"), consumers),
        mongo_kills=_mongo_kills(interviews, _stream(seed, "mongo")),
        fault_seeds={kind: _stream(seed, kind).randrange(2**31) for kind in ("rate_limit", "server_error", "slow")},
        unknown_interviews=2,
        bad_bodies=3,
    )
    digest = hashlib.sha256(repr(asdict(plan)).encode()).hexdigest()[:12]
    return replace(plan, digest=digest)


def _stream(seed: int, name: str) -> random.Random:
    return random.Random(f"{seed}:{name}")  # noqa: S311  (reproducible on purpose)


def _interviews(count: int, chance: random.Random) -> list[PlannedInterview]:
    """Half belong to one organization, an eighth fail, a third are delivered more than once."""
    return [
        PlannedInterview(
            interview_id=f"iv-{number:05}",
            organization_id=HOT if number % 2 else f"org-{chance.randrange(1, ORGANIZATIONS):02}",
            credits_required=chance.choice((0, 1, 5, 10, 25)),
            failure_code=chance.choice(FAILURE_CODES) if chance.random() < 0.125 else None,
            words=f"Case {number}: " + " ".join(chance.choices(WORDS, k=chance.randrange(40, 120))) + ".",
            duplicates=chance.choice((0, 0, 0, 0, 1, 2)),
            enqueue_lost=chance.random() < 0.02,
            gap_seconds=chance.expovariate(1 / 0.02),
        )
        for number in range(count)
    ]


def _grants(count: int, chance: random.Random) -> list[PlannedGrant]:
    """A few lots for each organization at the start, too few for some, and further ones while it runs."""
    organizations = [f"org-{number:02}" for number in range(ORGANIZATIONS)]
    first = [(0, organization) for organization in organizations for _ in range(3)]
    later = sorted((chance.randrange(1, max(2, count)), chance.choice(organizations)) for _ in range(count // 20))
    share = max(1, count // ORGANIZATIONS)
    return [
        PlannedGrant(
            before=before,
            organization_id=organization,
            amount=chance.randrange(1, 4 * share + 2) * (5 if organization == HOT else 1),
            key=f"grant:{number}",
            expires_in_seconds=chance.choice((None, 5.0, 30.0, 120.0)),
            repeats=chance.choice((0, 0, 1, 2)),
        )
        for number, (before, organization) in enumerate(first + later)
    ]


def _kills(chance: random.Random, consumers: int) -> list[Kill]:
    """More than any run uses; it takes them in order until its work is nearly done."""
    return [Kill(0.5 + chance.expovariate(1 / 2.0), chance.randrange(consumers)) for _ in range(1_000)]


def _mongo_kills(count: int, chance: random.Random) -> list[MongoKill]:
    """One in a small run, three in a large one."""
    times = (0.3,) if count < 500 else (0.15, 0.4, 0.7)
    return [MongoKill(each + chance.uniform(-0.05, 0.05), chance.uniform(0.5, 3.0)) for each in times]
