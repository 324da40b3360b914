"""Chromium without a window, for the tests of pages; they are skipped where it is not installed."""

import contextlib
import importlib.util
import shutil

import pytest

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
MISSING = not (BROWSER and DRIVER and importlib.util.find_spec("selenium"))
REQUIRED = pytest.mark.skipif(MISSING, reason="Chromium, chromedriver or selenium is not installed")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,900",
)  # fmt: skip


@contextlib.contextmanager
def started(profile):
    """A browser with an empty profile in this folder, which writes down what pages complain about."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for option in (*OPTIONS, f"--user-data-dir={profile}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def window(browser, width, height):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def ask(browser, script, *arguments):
    return browser.execute_script(f"return {script}", *arguments)
