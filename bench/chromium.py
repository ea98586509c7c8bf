"""A window of Debian's Chromium: offline, without a screen, with a profile of its own that is gone afterwards."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.wait import WebDriverWait

PROGRAMS: Final = ("chromium", "chromedriver")
PACKAGES: Final = "chromium and chromium-driver"
"""Debian's names of what holds them."""
LANGUAGES: Final = {"en": "en-GB,en;q=0.9,zh;q=0.1", "zh": "zh-CN,zh;q=0.9,en;q=0.8"}

_WAIT_S = 30
_SWITCHES = (
    "--headless=new",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",  # containers often have 64 MiB of it
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--force-color-profile=srgb",
    # Whatever a page or the browser itself asks for elsewhere is not found.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--no-first-run",
    "--no-proxy-server",
)
_WATCH = """
window.violations = [];
addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI, sample }) =>
  window.violations.push(`${effectiveDirective} blocked ${blockedURI} ${sample}`));
"""


def missing_programs() -> list[str]:
    """Names of Chromium and its driver where they are missing."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


@contextmanager
def chromium(*switches: str) -> Iterator[Window]:
    """A window of 1280 by 900 CSS pixels, with more switches of Chromium's own; both programs must be there.

    Raises:
        selenium.common.WebDriverException: It did not start, and why.
    """
    options = ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for switch in (*_SWITCHES, *switches):
        options.add_argument(switch)
    if os.geteuid() == 0:
        # Its sandbox refuses root, as whom containers run.
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # With both paths given, Selenium looks for no browser and asks nobody.
    driver = Chrome(options, ChromeService(executable_path=str(shutil.which("chromedriver"))))
    try:
        driver.set_script_timeout(_WAIT_S)
        driver.set_page_load_timeout(_WAIT_S)
        window = Window(driver=driver)
        window.command("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
        window.resize(1280, 900)
        yield window
    finally:
        driver.quit()


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One page at a time, in the language and colours that were asked for last."""

    driver: Chrome

    def command(self, name: str, **arguments: Any) -> dict[str, Any]:
        """A command of the DevTools protocol, and its result."""
        result: dict[str, Any] = self.driver.execute_cdp_cmd(name, arguments)
        return result

    def resize(self, width: int, height: int, scale: float = 1.0) -> None:
        """Resizes the page to so many CSS pixels, each of `scale` pixels a side."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **metrics)

    def speak(self, language: str) -> None:
        """The pages that are opened from now on are asked for in one of LANGUAGES."""
        self.command("Network.enable")
        self.command("Network.clearBrowserCookies")
        self.command("Network.setExtraHTTPHeaders", headers={"Accept-Language": LANGUAGES[language]})

    def paint(self, scheme: str) -> None:
        """Shows pages in the `light` or `dark` scheme, without anything that moves."""
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        named = [{"name": name, "value": value} for name, value in features.items()]
        self.command("Emulation.setEmulatedMedia", features=named)

    def open(self, url: str) -> None:
        """Goes to a page, and comes back when it is loaded."""
        self.driver.get(url)

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Comes back when what the block does has led to another page. Raises: TimeoutException, after 30 s."""
        page = self.driver.find_element("tag name", "html")
        yield
        WebDriverWait(self.driver, _WAIT_S, poll_frequency=0.02).until(staleness_of(page))

    def run(self, body: str, *arguments: Any) -> Any:
        """Runs a function of this body in the page and returns its result."""
        return self.driver.execute_script(body, *arguments)

    def awaited(self, promise: str, *arguments: Any) -> Any:
        """Result of a promise in the page; `promise` is an expression. Raises: TimeoutException, after 30 s."""
        body = f"const done = arguments[arguments.length - 1]; ({promise}).then(done);"
        return self.driver.execute_async_script(body, *arguments)

    def press(self, *keys: str) -> None:
        """Keys one after the other, to whatever has the focus."""
        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def chord(self, modifier: str, key: str) -> None:
        """A key while another is held."""
        ActionChains(self.driver, duration=0).key_down(modifier).send_keys(key).key_up(modifier).perform()

    def picture(self, file: Path) -> None:
        """Saves a picture of the page as PNG."""
        file.write_bytes(self.driver.get_screenshot_as_png())

    def complaints(self) -> list[str]:
        """Policy violations of the page since it was opened, and messages in the browser's console."""
        violations: list[str] = self.run("return window.violations")
        told = [
            f"{each['level']} {each['message']}" for each in self.driver.execute("getLog", {"type": "browser"})["value"]
        ]
        return [*violations, *told]
