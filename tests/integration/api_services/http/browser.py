"""A real headless Chromium, where one is installed."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
REQUIRED = "SOPHIA_REQUIRE_CHROMIUM"
"""Set where a missing browser must fail the tests instead of leaving them out."""


def chromium_path() -> str | None:
    """The first Chromium or Chrome on PATH."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for path in map(shutil.which, names) if path is not None), None)


@contextmanager
def chromium() -> Generator[Browser]:
    """A browser; skips the test, or fails it where `SOPHIA_REQUIRE_CHROMIUM` is set, when there is none."""
    path = chromium_path()
    if path is None:
        message = "no Chromium on PATH (Debian: apt-get install chromium)"
        pytest.fail(message) if os.environ.get(REQUIRED) else pytest.skip(message)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()
