"""The transcripts of the demonstration: text files of `[mm:ss] Speaker: words`, one turn a line."""

import re
from pathlib import Path
from typing import Any, Final

from api_services.errors import ConfigurationError

FOLDER: Final = Path(__file__).parent / "transcripts"

_TURN: Final = re.compile(r"^\[(\d{2}):(\d{2})\] (Interviewer|Candidate): (\S.*)$")


def transcript_names() -> list[str]:
    """All of them, in order."""
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def read_transcript(name: str) -> dict[str, Any]:
    """The transcript as the API takes it. Raises `ConfigurationError` that names the line at fault."""
    turns: list[dict[str, Any]] = []
    for number, line in enumerate((FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        match = _TURN.match(line)
        if match is None:
            raise ConfigurationError(f"{name}.txt, line {number}: expected '[mm:ss] Interviewer: ...' or 'Candidate'.")
        minutes, seconds, speaker, text = match.groups()
        turns.append({"speaker": speaker.lower(), "text": text, "atSeconds": int(minutes) * 60 + int(seconds)})
    return {"turns": turns}


def words_of(transcript: dict[str, Any]) -> int:
    """How many words were spoken."""
    return sum(len(turn["text"].split()) for turn in transcript["turns"])
