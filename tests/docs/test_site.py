"""The site of the documentation: it is built without a warning, complete, and no link in it leads nowhere."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor

from docs.site import pages
from docs.site.__main__ import BuildFailed, build, navigation
from docs.site.llms import pages_of
from hummock.config import variables
from hummock.rpc.policy import SERVICES
from hummock_client.v1 import errors_pb2

pytestmark = [pytest.mark.long, pytest.mark.storeless]

_MARKUP = re.compile(r"\*\*|\]\(|\|---|^- |`|&[a-z]+;|\\[\[\]*|]", re.MULTILINE)
_TOOL = pages.ROOT / ".toolchain/docs/bin/zensical"


@dataclass(slots=True)
class Page:
    """What a page has: its text, that of its article outside code, ids to lead to, and links."""

    text: str = ""
    prose: str = ""
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._inside = {"article": 0, "code": 0}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self._inside:
            self._inside[tag] += 1
        for name, value in attrs:
            if value and name == "id":
                self.page.ids.add(value)
            elif value and name in ("href", "src"):
                self.page.links.append(value)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            self._inside[tag] -= 1

    def handle_data(self, data: str) -> None:
        self.page.text += data
        if self._inside["article"] and not self._inside["code"]:
            self.page.prose += data


@pytest.fixture(scope="module")
def tool() -> Path:
    """The program that builds the site. Without it the tests are skipped, aloud, or with REQUIRE_CLIENTS=1 fail."""
    if not _TOOL.exists():
        said = "zensical is missing, which builds the site; `make docs` installs it"
        if os.environ.get("REQUIRE_CLIENTS") == "1":
            pytest.fail(said)
        pytest.skip(said)
    return _TOOL


@pytest.fixture(scope="module")
def site(tool: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("docs"), tool)


@pytest.fixture(scope="module")
def read(site: Path) -> dict[Path, Page]:
    """Each page of the site by its file."""
    found = {}
    for file in site.rglob("*.html"):
        reader = _Reader()
        reader.feed(file.read_text(encoding="utf-8"))
        found[file] = reader.page
    return found


def test_every_link_within_the_site_leads_to_a_page_and_a_place_in_it(site: Path, read: dict[Path, Page]) -> None:
    missing = []
    for file, page in read.items():
        if file.name == "404.html":  # its links are those of the site's root
            continue
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (file.parent / unquote(address.path)).resolve() if address.path else file
            target = target / "index.html" if target.is_dir() else target
            is_place = not address.fragment or target not in read or unquote(address.fragment) in read[target].ids
            if not (target.is_file() and target.is_relative_to(site) and is_place):
                missing.append(f"{file.relative_to(site)}: {link}")
    assert missing == []


def test_no_markup_is_left_as_text(site: Path, read: dict[Path, Page]) -> None:
    """GitHub's Markdown is not quite Python-Markdown: a list needs an empty line before it, for one."""
    left = {str(file.relative_to(site)): _MARKUP.findall(page.prose) for file, page in read.items()}
    assert {name: found for name, found in left.items() if found} == {}


def test_a_link_that_leads_nowhere_stops_the_build(tool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = pages.write_documents

    def with_a_broken_link(site: pages.Site) -> None:
        pages.write(site.folder / "broken.md", "# Broken\n\n[gone](gone.md)\n")
        written(site)

    monkeypatch.setattr("docs.site.__main__.write_documents", with_a_broken_link)
    with pytest.raises(BuildFailed, match=r"(?s)broken\.md.*gone\.md"):
        build(tmp_path, tool)


def test_a_second_build_leaves_the_same_site(tool: Path, site: Path) -> None:
    first = _digests(site)
    assert _digests(build(site.parent, tool)) == first


def test_the_reference_has_every_call_message_field_and_value(read: dict[Path, Page], site: Path) -> None:
    services = [service for service in SERVICES if service.full_name.startswith("hummock.v1.")]
    calls = [method for service in services for method in service.methods]
    assert {"Recall", "Learn", "RenderTurn"} <= {call.name for call in calls}
    listed = read[site / "reference/api/index.html"].text
    assert [call.name for call in calls if call.name not in listed] == []
    places = {place for file, page in read.items() if "api" in file.parts for place in page.ids}
    assert [call.name for call in calls if f"call-{call.name.lower()}" not in places] == []
    text = "".join(page.text for file, page in read.items() if "api" in file.parts)
    messages, enums = _types([type_ for call in calls for type_ in (call.input_type, call.output_type)])
    assert [each.name for each in (*messages, *enums) if each.name.lower() not in places] == []
    names = {one.name for message in messages for one in message.fields}
    names |= {value.name for enum in enums for value in enum.values}
    assert sorted(name for name in names if name not in text) == []


def test_the_reference_has_every_reason_setting_and_command(read: dict[Path, Page], site: Path) -> None:
    reasons = read[site / "reference/api/errors/index.html"].text
    names = [name.removeprefix("ERROR_REASON_") for name in errors_pb2.ErrorReason.keys()][1:]  # noqa: SIM118 - no mapping
    assert [name for name in names if name not in reasons] == []
    settings = read[site / "reference/settings/index.html"].text
    assert [name for path, name in variables() if name not in settings or path[-1] not in settings] == []
    commands = read[site / "reference/commands/index.html"].ids
    assert {"hummock-serve", "hummock-recall", "hummock-save-backup", "hummock-tokens-create"} <= commands
    assert not {"hummock-reader", "hummock-garden"} & commands


def test_every_page_of_the_navigation_is_there_and_every_page_for_readers_is_in_it(site: Path) -> None:
    listed = {language: list(pages_of(navigation(language))) for language in ("en", "zh")}
    for language, names in listed.items():
        root = site if language == "en" else site / language
        assert [name for name in names if not (root / pages.url_of(name) / "index.html").is_file()] == []
    documents = [each for each in pages.documents() if each.startswith("docs/") and "/decisions/" not in each]
    placed = {
        language: {pages.place_of(each) for each in documents if pages.language_of(each) == language}
        for language in listed
    }
    assert {language: sorted(placed[language] - set(names)) for language, names in listed.items()} == {
        "en": [],
        "zh": [],
    }


def test_each_language_has_the_same_starting_pages_and_leads_to_the_other(site: Path, read: dict[Path, Page]) -> None:
    starts = {"index.html", *(f"start/{name}/index.html" for name in ("agent", "application", "ide", "operator"))}
    for name in starts:
        assert '<html lang="en"' in (site / name).read_text(encoding="utf-8")
        assert '<html lang="zh"' in (site / "zh" / name).read_text(encoding="utf-8")
    for here, there in ((site / "index.html", site / "zh/index.html"), (site / "zh/index.html", site / "index.html")):
        assert there in {(here.parent / link).resolve() / "index.html" for link in read[here].links}


def test_the_list_for_language_models_leads_to_the_text_of_each_page(site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S.*\.$", text, re.MULTILINE)
    assert len(links) == len(list(pages_of(navigation("en"))))
    assert [link for link in links if not (site / link).read_text(encoding="utf-8").strip()] == []
    full = (site / "llms-full.txt").read_text(encoding="utf-8")
    assert "# A coding agent with memory" in full
    assert "## hummock serve" not in full  # the reference has its own pages


def test_nothing_is_fetched_from_elsewhere(read: dict[Path, Page], site: Path) -> None:
    for file in read:
        loaded = re.findall(r'<(?:script|img|iframe)[^>]+src="?(https?:[^"\s>]+)', file.read_text(encoding="utf-8"))
        loaded += re.findall(r'<link[^>]+stylesheet[^>]+href="?(https?:[^"\s>]+)', file.read_text(encoding="utf-8"))
        assert loaded == [], file.relative_to(site)


def _types(roots: list[Descriptor]) -> tuple[list[Descriptor], list[EnumDescriptor]]:
    """All messages and enums of the contract that the roots are made of."""
    messages: dict[str, Descriptor] = {}
    enums: dict[str, EnumDescriptor] = {}
    waiting = list(roots)
    while waiting:
        message = waiting.pop()
        if message.full_name in messages or not message.full_name.startswith("hummock.v1."):
            continue
        messages[message.full_name] = message
        for one in message.fields:
            if one.message_type is not None:
                waiting.append(one.message_type)
            if one.enum_type is not None:
                enums[one.enum_type.full_name] = one.enum_type
    return [each for each in messages.values() if not each.GetOptions().map_entry], list(enums.values())


def _digests(folder: Path) -> dict[str, str]:
    return dict(_digest(folder))


def _digest(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()
