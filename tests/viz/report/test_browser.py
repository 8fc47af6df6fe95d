import time
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

from graphite_gen.viz.report import ReportData

from .browser import Browser, browse, find_browser

PROGRAM = find_browser()

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium: install Debian's package 'chromium'"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[Browser]:
    assert PROGRAM is not None
    with browse(PROGRAM, folder) as found:
        yield found


@pytest.fixture
def opened(browser: Browser, file: Path) -> Iterator[Browser]:
    """The page in a window; afterwards there must be no errors and no requests."""
    browser.requests.clear()
    browser.complaints.clear()
    browser.look(1200, 900)
    browser.open(file)
    yield browser
    browser.run("0")
    assert browser.complaints == []
    assert {request for request in browser.requests if not request.startswith(("blob:", "data:"))} == {file.as_uri()}


def test_names_stay_text(opened: Browser, contents: ReportData) -> None:
    assert opened.run("document.querySelector('h1').textContent") == contents.name
    assert opened.run("document.title").startswith(contents.name)
    assert opened.run("document.querySelectorAll('img:not([src^=\"data:image/png\"])').length") == 0


def test_the_gallery_works_by_keyboard(opened: Browser) -> None:
    captions = opened.run("[...document.querySelectorAll('.tile')].map(tile => tile.dataset.caption)")
    opened.run("document.querySelectorAll('.tile')[1].focus()")
    opened.press("Enter")

    assert opened.run("document.getElementById('viewer').open")
    assert opened.run("document.getElementById('viewer-caption').textContent") == captions[1]
    width = "document.querySelector('#viewer-picture img').getBoundingClientRect().width"
    assert opened.run(width) > 2 * opened.run("document.querySelector('.tile img').getBoundingClientRect().width")
    opened.press("ArrowRight")
    assert opened.run("document.getElementById('viewer-caption').textContent") == captions[2]
    opened.press("Escape")
    assert not opened.run("document.getElementById('viewer').open")
    opened.wait("document.activeElement === document.querySelectorAll('.tile')[2]")


def test_the_table_filters_and_sorts(opened: Browser, contents: ReportData) -> None:
    def shown() -> list[str]:
        return opened.run(
            "[...document.querySelectorAll('#samples-table tbody tr')].filter(row => !row.hidden)"
            ".map(row => row.cells[1].textContent)"
        )

    def search(text: str) -> None:
        opened.run(f"search.value = {text!r}; search.dispatchEvent(new Event('input'))")

    sizes = [str(row.graph.nodes) for row in contents.samples]
    assert shown() == sizes
    search("</SCRIPT> 23")
    assert len(shown()) == 1
    assert opened.run("document.getElementById('count').textContent") == "1 of 20 graphs"
    search("no such graph")
    assert shown() == []
    search("")
    opened.run("document.querySelectorAll('#samples-table .sort')[1].click()")
    assert shown() == sorted(sizes)
    opened.run("document.querySelectorAll('#samples-table .sort')[1].click()")
    assert shown() == sorted(sizes, reverse=True)


def test_numbers_sort_by_value_and_search_matches_starts_of_words(opened: Browser, contents: ReportData) -> None:
    figures = [f"{row.summaries['clustering']:.4g}" for row in contents.samples]
    assert {"0.5333", "0.6"} < set(figures), "two that sort differently as strings"
    opened.run("document.querySelectorAll('#samples-table .sort')[4].click()")
    found = opened.run("[...document.querySelectorAll('#samples-table tbody tr')].map(row => row.cells[4].textContent)")

    assert found == sorted(figures, key=float)
    assert opened.run(
        "[has('3 0.15 invalid', 'valid'), has('3 0.15 invalid', '15'), has('3 0.15 invalid', '0.1')]"
    ) == [False, False, True]


def test_a_download_opens_in_networkx(opened: Browser, contents: ReportData, folder: Path) -> None:
    opened.run("document.querySelectorAll('button.download')[4].click()")
    target = folder / "downloads" / "graph-4.graphml"
    end = time.monotonic() + 30
    while not target.exists():
        assert time.monotonic() < end
        opened.run("new Promise(done => setTimeout(done, 50))")

    assert nx.read_graphml(target).adj == contents.samples[4].graph.to_networkx().adj


@pytest.mark.parametrize("width", [1200, 360])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_wider_than_the_window(opened: Browser, width: int, dark: bool) -> None:
    opened.look(width, 800, dark=dark)

    assert opened.run("document.documentElement.scrollWidth") <= width
    background = opened.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background[4:-1].split(","))) < 200) == dark


def test_print_shows_all_rows_and_no_buttons(opened: Browser) -> None:
    opened.look(800, 1000, dark=True, media="print")

    assert opened.run("getComputedStyle(document.querySelector('.download')).display") == "none"
    assert opened.run(
        "document.querySelector('.table').scrollHeight <= document.querySelector('.table').clientHeight + 1"
    )
    assert opened.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
