"""Routes only: each checks its input, calls one service and shows what it returns."""
