"""The names of stages that code must know."""

from typing import Final

LOCAL_STAGE: Final = "local"
"""The stage on one machine, deployed to the emulator."""
