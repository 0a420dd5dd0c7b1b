"""The rules as a CrossGuard pack: `pulumi preview --policy-pack policy` judges any stack, also one made elsewhere."""

import sys
from pathlib import Path

from pulumi_policy import EnforcementLevel, PolicyPack

# The engine starts a pack in its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from infra.rules.policies import stack_policies

PolicyPack(name="sophia", enforcement_level=EnforcementLevel.MANDATORY, policies=[*stack_policies()])
