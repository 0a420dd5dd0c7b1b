"""Where the local stage keeps what it needs: one folder, by default the checkout's ignored `.sophia/`."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class StagePaths:
    """Files of one local stage below `state_dir`."""

    state_dir: Path
    root: Path = ROOT

    @property
    def run_file(self) -> Path:
        """Processes, ports and outputs of the running stage."""
        return self.state_dir / "run.json"

    @property
    def lock_file(self) -> Path:
        return self.state_dir / "stage.lock"

    @property
    def passphrase_file(self) -> Path:
        return self.state_dir / "passphrase"

    @property
    def keys_file(self) -> Path:
        """The bearer keys of the API, role to key."""
        return self.state_dir / "keys.json"

    @property
    def config_file(self) -> Path:
        """`Pulumi.local.yaml` with what differs from run to run."""
        return self.state_dir / "Pulumi.local.yaml"

    @property
    def backend_dir(self) -> Path:
        """Pulumi's state of the stage; it describes the emulator's memory and goes with it."""
        return self.state_dir / "backend"

    @property
    def pulumi_home(self) -> Path:
        return self.state_dir / "pulumi-home"

    @property
    def mongo_dir(self) -> Path:
        return self.state_dir / "mongo"

    @property
    def emulator_dir(self) -> Path:
        return self.state_dir / "emulator"

    @property
    def index_dir(self) -> Path:
        return self.state_dir / "index"

    @property
    def log_dir(self) -> Path:
        return self.state_dir / "logs"

    def log_path(self, name: str) -> Path:
        return self.log_dir / f"{name}.log"
