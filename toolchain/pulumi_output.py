"""What the Pulumi CLI prints, made fit for one sentence."""


def one_line(text: str) -> str:
    """The text's last lines on one line, for an error message."""
    return " | ".join(line.strip() for line in text.splitlines() if line.strip())[-600:]


_FRAMES = (
    "an unhandled error occurred:",
    "python inline source runtime error:",
    "Program failed with an unhandled exception:",
)


def explain_failure(output: str) -> str:
    """What went wrong in a Pulumi run: its `error:` lines without the engine's frame, each once."""
    faults: list[str] = []
    for line in output.splitlines():
        if "error:" not in line:
            continue
        fault = line.split("error:", 1)[1]
        for frame in _FRAMES:
            fault = fault.replace(frame, "")
        fault = fault.strip()
        if fault and fault != "update failed" and fault not in faults:
            faults.append(fault)
    return one_line("\n".join(faults)) or one_line(output)
