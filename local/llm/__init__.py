"""A local server of OpenAI's HTTP API: deterministic answers, strict schemas, faults on demand. Loopback only."""
