"""What-if in the page: the browser predicts what Python predicts, and only where it may."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import shared_surveys
import survey_fixture as made
import survey_pages
from leadline.models.model import PredictionRefused
from leadline.models.predictor import MODELS, Predictor
from leadline.models.ranges import Ranges
from leadline.record import PARAMETERS, Interval, Measurement, Prediction, Survey, Workload
from leadline.record.wording import format_rate_ci, format_value
from leadline.studies.survey.page import pack, render_html, what_if_document
from leadline.units import format_bytes, format_rate
from opened_page import OVERFLOW, OpenedPage

_PROFILE = "three-level"
"""Three levels; in one of them whole passes are apart from all other shares of sequential."""


@pytest.fixture(scope="module")
def surveyed() -> tuple[Survey, tuple[Measurement, ...]]:
    found = shared_surveys.surveyed(_PROFILE)
    return found.survey, found.points


@pytest.fixture(scope="module")
def page_of(
    surveyed: tuple[Survey, tuple[Measurement, ...]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for model in MODELS:
        html = render_html(*surveyed, model=model)
        (folder / f"{model}.html").write_text(html, encoding="utf-8")
    return {model: folder / f"{model}.html" for model in MODELS}


@pytest.fixture(scope="module")
def fixture_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two levels, so far apart that the chart needs a log axis."""
    return survey_pages.page_of("two-region", tmp_path_factory.mktemp("fixture"))


def _random_workloads(predictor: Predictor, count: int, seed: int) -> list[Workload]:
    """Workloads over the survey's hull, which no single region need hold; ends come often."""
    rng = np.random.default_rng(seed)
    ranges = predictor.ranges
    found = []
    for _ in range(count):
        values: dict[str, Any] = {}
        for name in PARAMETERS:
            span = getattr(ranges, name)
            share = float(np.clip(rng.uniform(-0.1, 1.1), 0, 1))
            if name.endswith("_frac"):
                values[name] = span.low + share * (span.high - span.low)
            else:
                at = round(float(span.low * (span.high / span.low) ** share))
                values[name] = min(max(at, int(np.ceil(span.low))), int(span.high))
        found.append(Workload(**values))
    boundaries = [
        region.high_bytes + side for region in predictor.survey.regions for side in (0, 1)
    ]
    inside = [at for at in boundaries if ranges.unique_bytes.holds(at)]
    return found + [found[0].with_value("unique_bytes", at) for at in inside]


def _answers(predictor: Predictor, workloads: list[Workload]) -> list[Prediction | None]:
    answers: list[Prediction | None] = []
    for workload in workloads:
        try:
            answers.append(predictor.predict(workload))
        except PredictionRefused:
            answers.append(None)
    return answers


def _close(found: dict[str, Any], wanted: Interval) -> bool:
    numbers = [found[end] for end in ("value", "low", "high")]
    ends = [wanted.value, wanted.low, wanted.high]
    return found["n"] == wanted.n and numbers == pytest.approx(ends, rel=1e-9, abs=0)


def test_the_browser_writes_sizes_and_rates_as_python_does(
    browser: Any, fixture_page: Path
) -> None:
    page = OpenedPage.opened(browser, fixture_page, 1280)
    rng = np.random.default_rng(2)
    sizes = [512, 999, 1000, 1152, 1408, 2**20, 2**50, *np.exp(rng.uniform(6, 34, 500))]
    sizes += [2**20 * eighths / 8 for eighths in range(8, 80)]
    numbers = [float(size) for size in sizes]
    written = page.ask("return arguments[0].map(leadlineWhatIf.sayBytes)", numbers)
    assert written == [format_bytes(number) for number in numbers]
    rates = [0.5, 1.0, 1.125, 10.25, 999.5, 1000.0, *map(float, np.exp(rng.uniform(-5, 9, 500)))]
    written = page.ask("return arguments[0].map(leadlineWhatIf.sayRate)", rates)
    assert written == [format_rate(rate) for rate in rates]


@pytest.mark.parametrize("triangular", [True, False])
def test_a_packed_matrix_arrives_in_the_browser_to_the_bit(
    browser: Any, fixture_page: Path, triangular: bool
) -> None:
    matrix = np.random.default_rng(5).standard_normal((17, 17))
    if triangular:
        matrix = np.tril(matrix)
    packed = pack({"kind": "joint", "whitening": matrix.tolist()})["whitening"]
    page = OpenedPage.opened(browser, fixture_page, 1280)
    rows = page.ask("return leadlineModels.unpack(arguments[0]).map(row => [...row])", packed)
    assert packed["triangular"] == triangular
    wanted = [row[: at + 1] if triangular else row for at, row in enumerate(matrix.tolist())]
    assert rows == wanted


_PLACE = "return leadlineWhatIf.current()"
_TEXTS = """
const text = (name) => document.getElementById(`what-if-${name}`).textContent;
return Object.fromEntries(arguments[0].map(name => [name, text(name)]));
"""
_SET = """
const input = document.getElementById(`what-if-${arguments[0]}`);
input.value = arguments[1];
input.dispatchEvent(new Event('input'));
return Number(input.value);
"""
_TAKE_BACK = """
window.atLoad ??= leadlineWhatIf.current();
const move = (input, value, kind) => { input.value = value; input.dispatchEvent(new Event(kind)) };
const asked = JSON.parse(document.getElementById('leadline-what-if').textContent);
for (const {parameter, start} of asked.sliders)
  move(document.getElementById(`what-if-${parameter}`), start, 'input');
const over = document.getElementById('what-if-over');
move(over, over.options[0].value, 'change');
return [window.atLoad, leadlineWhatIf.current()];
"""
_NAMES = (
    "throughput",
    "throughput-range",
    "run",
    "requests",
    "response",
    "region",
    "command",
    "warnings",
    *(f"{name}-value" for name in PARAMETERS),
)


def _as_loaded(browser: Any, path: Path) -> OpenedPage:
    """Open a page with its sliders where they stand at first, whatever test moved them."""
    page = OpenedPage.opened(browser, path, 1280)
    at_load, now = page.ask(_TAKE_BACK)
    assert now == at_load
    return page


@pytest.mark.parametrize(
    ("width_px", "scheme"), [(400, "dark"), (1280, "dark"), (1280, "light"), (400, "light")]
)
def test_the_section_is_drawn_quiet_and_never_too_wide(
    browser: Any, fixture_page: Path, width_px: int, scheme: str
) -> None:
    page = OpenedPage.opened(browser, fixture_page, width_px, scheme)
    page.wait("leadlineWhatIf.draw()")
    drawn = page.ask(
        """const chart = document.getElementById('what-if-chart');
        const box = chart.querySelector('svg').getBoundingClientRect();
        return {key: chart.dataset.drawn, width: box.width,
                room: chart.getBoundingClientRect().width}"""
    )
    assert drawn["key"] == f"unique_bytes log {scheme}"
    assert 0.85 * drawn["room"] < drawn["width"] <= drawn["room"] + 1
    wide = """const room = document.documentElement.clientWidth;
        return [...document.querySelectorAll('#what-if *')].filter(each =>
          each.getBoundingClientRect().right > room + 1).map(each => each.outerHTML.slice(0, 90))"""
    assert page.ask(wide) == []
    assert page.ask(OVERFLOW) <= 0
    assert page.requests() == []
    assert page.console() == []


def test_the_section_says_what_python_predicts_at_the_sliders(
    browser: Any, fixture_page: Path
) -> None:
    survey = made.two_region()
    predictor = Predictor(survey, made.points(survey))
    page = _as_loaded(browser, fixture_page)
    for place, process_num in ((5, 3), (63, 0)):
        page.ask(_SET, "unique_bytes", place)
        page.ask(_SET, "process_num", process_num)
        workload = Workload(**page.ask(_PLACE))
        found = predictor.predict(workload)
        texts = page.ask(_TEXTS, _NAMES)
        rate = found.throughput_mb_s
        assert f"{texts['throughput']} {texts['throughput-range']}" == format_rate_ci(rate)
        assert texts["region"] == ("page cache", "disk")[place == 63]
        spelled = texts["command"].rsplit(" ", 1)[1]
        assert f"--model {predictor.model.name} --workload {spelled}" in texts["command"]
        assert Workload.parse(texts["command"].rsplit(" ", 1)[1]) == workload
        requests_per_s = rate.value * 1e6 / workload.size_mean
        number = float(texts["requests"].removesuffix(" /s").replace(",", ""))
        assert number == pytest.approx(requests_per_s, rel=6e-3)
        value, unit = texts["response"].split(" ")
        seconds = float(value) * {"s": 1, "ms": 1e-3, "µs": 1e-6}[unit]
        assert seconds == pytest.approx(workload.process_num / requests_per_s, rel=6e-3)
        assert texts["unique_bytes-value"] == format_value("unique_bytes", workload.unique_bytes)
        assert texts["read_frac-value"] == "50%"


def test_a_slider_moves_by_keys_and_tells_a_screen_reader_its_value(
    browser: Any, fixture_page: Path
) -> None:
    ranges = Predictor(made.two_region(), made.points(made.two_region())).ranges
    least = {name: getattr(ranges, name).low for name in PARAMETERS}
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    page = _as_loaded(browser, fixture_page)
    for name in PARAMETERS:
        slider = browser.find_element("id", f"what-if-{name}")
        label = browser.find_element("css selector", f"label[for='what-if-{name}']")
        assert label.text == slider.accessible_name
        before = page.ask(_PLACE)[name]
        slider.send_keys(keys.ARROW_RIGHT)
        place = page.ask(_PLACE)
        assert place[name] > before
        words = slider.get_attribute("aria-valuetext")
        assert words == page.ask(_TEXTS, [f"{name}-value"])[f"{name}-value"]
        slider.send_keys(keys.HOME)
        assert page.ask(_PLACE)[name] == least[name]


def _slider(survey: Survey, parameter: str) -> dict[str, Any]:
    document = what_if_document(survey, made.points(survey))
    assert isinstance(document, dict)
    found = [each for each in document["sliders"] if each["parameter"] == parameter]
    slider: dict[str, Any] = found[0]
    return slider


def test_a_press_sets_the_sliders_to_a_kind_of_an_applications_requests(
    browser: Any, surveyed: tuple[Survey, tuple[Measurement, ...]], tmp_path: Path
) -> None:
    survey, points = surveyed
    needed = (Workload(1 << 30, 65536, 0.0, 0.75, 2), Workload(64 << 20, 16384, 1.0, 0.0, 1))
    start = msgspec.structs.replace(survey.start, needed=needed)
    page_path = tmp_path / "page.html"
    html = render_html(msgspec.structs.replace(survey, start=start), points)
    page_path.write_text(html, encoding="utf-8")
    page = OpenedPage.opened(browser, page_path, 1280)
    buttons = "[...document.querySelectorAll('#what-if [data-kind]')]"
    said = page.ask(f"return {buttons}.map(each => each.textContent)")
    assert said == ["writes of 64 KiB, 75% sequential, 2 at once", "reads of 16 KiB"]
    for number, each in enumerate(needed):
        page.ask(f"{buttons}[{number}].click()")
        found = page.ask(_PLACE)
        assert (found["size_mean"], found["process_num"]) == (each.size_mean, each.process_num)
        assert found["read_frac"] == each.read_frac
        assert found["unique_bytes"] == pytest.approx(each.unique_bytes, rel=0.05)


def _assert_page_says(
    browser: Any, path: Path, workloads: list[Workload], wanted: list[Prediction | None]
) -> None:
    page = OpenedPage.opened(browser, path, 1280)
    spelled = [msgspec.to_builtins(workload) for workload in workloads]
    found = page.ask("return arguments[0].map(each => leadlineWhatIf.predict(each))", spelled)
    for workload, answer, own in zip(workloads, wanted, found, strict=True):
        assert (own is None) == (answer is None), workload
        if answer is None:
            continue
        assert _close(own["throughput_mb_s"], answer.throughput_mb_s), workload
        assert _close(own["run_throughput_mb_s"], answer.run_throughput_mb_s), workload
        assert own["region"] == answer.region, workload
        assert own["warnings"] == list(map(str, answer.findings)), workload


def test_the_browser_knows_the_pages_that_writes_tear(browser: Any, fixture_page: Path) -> None:
    survey = made.two_region()
    predictor = Predictor(survey, made.points(survey))
    assert predictor.model.knows_pages
    workloads = _random_workloads(predictor, 40, seed=10)
    wanted = _answers(predictor, workloads)
    assert {answer.region for answer in wanted if answer is not None} == {0, 1}
    _assert_page_says(browser, fixture_page, workloads, wanted)


@pytest.mark.parametrize(
    "model", [pytest.param(each, marks=[pytest.mark.long] * (each == "product")) for each in MODELS]
)
def test_the_browser_predicts_what_python_predicts(
    browser: Any,
    surveyed: tuple[Survey, tuple[Measurement, ...]],
    page_of: dict[str, Path],
    model: str,
) -> None:
    predictor = Predictor(*surveyed, model=model)
    workloads = _random_workloads(predictor, 140, seed=9)
    wanted = _answers(predictor, workloads)
    _assert_page_says(browser, page_of[model], workloads, wanted)
    predicted = sum(answer is not None for answer in wanted)
    assert predicted >= 60
    assert predicted < len(workloads)
    warned = [answer for answer in wanted if answer is not None and answer.findings]
    assert 2 <= len(warned) < predicted
    assert {answer.region for answer in wanted if answer is not None} == {0, 1, 2}


def test_no_place_of_the_sliders_is_outside_what_was_surveyed(
    browser: Any, surveyed: tuple[Survey, tuple[Measurement, ...]], page_of: dict[str, Path]
) -> None:
    predictor = Predictor(*surveyed, model="product")
    page = _as_loaded(browser, page_of["product"])
    places = page.ask(
        """const found = [], input = (name) => document.getElementById(`what-if-${name}`);
        let state = 12345;
        const random = () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
        for (let take = 0; take < 150; take += 1) {
          for (const name of arguments[0]) {
            input(name).value = Math.round((1.4 * random() - 0.2) * input(name).max);
            input(name).dispatchEvent(new Event('input'));
          }
          found.push(leadlineWhatIf.current());
        }
        return found""",
        PARAMETERS,
    )
    workloads = [Workload(**place) for place in places]
    assert all(predictor.ranges.holds(workload) for workload in workloads)
    regions = {answer.region for answer in predictor.predict_all(workloads)}
    assert regions == {0, 1, 2}
    assert {workload.unique_bytes for workload in workloads} >= {
        predictor.ranges.unique_bytes.low,
        predictor.ranges.unique_bytes.high,
    }


def test_a_slider_that_a_level_holds_back_returns_to_what_was_asked(
    browser: Any, surveyed: tuple[Survey, tuple[Measurement, ...]], page_of: dict[str, Path]
) -> None:
    page = _as_loaded(browser, page_of["product"])
    ranges = Ranges(surveyed[0])
    page.ask(_SET, "unique_bytes", 999)
    page.ask(_SET, "size_mean", 999)
    largest = page.ask(_PLACE)["size_mean"]
    assert largest == ranges.size_mean.high
    page.ask(_SET, "unique_bytes", 0)
    held = page.ask(_PLACE)
    assert held["size_mean"] < largest
    stop = page.ask("return document.getElementById('what-if-size_mean').max")
    assert page.ask(_SET, "unique_bytes", 999) > 0
    assert page.ask(_PLACE)["size_mean"] == largest
    assert int(stop) < int(page.ask("return document.getElementById('what-if-size_mean').max"))


_CHART = """
const svg = document.querySelector('#what-if-chart svg');
const tips = [...svg.querySelectorAll('.mark-symbol')].at(-1).querySelectorAll('path');
const middle = (each) => { const box = each.getBoundingClientRect(); return box.x + box.width / 2 };
const marks = [...svg.querySelectorAll('.mark-symbol')].slice(0, -1);
return {points: tips.length, xs: [...tips].map(middle),
        mark: middle(marks[0].querySelector('path')),
        words: [...tips].map(each => each.getAttribute('aria-label')),
        gaps: !document.getElementById('what-if-gaps').hidden,
        key: document.getElementById('what-if-chart').dataset.drawn}
"""
_OVER = """
const over = document.getElementById('what-if-over');
over.value = arguments[0];
over.dispatchEvent(new Event('change'));
"""


def test_the_chart_runs_over_the_chosen_parameter_and_marks_the_place(
    browser: Any, surveyed: tuple[Survey, tuple[Measurement, ...]], page_of: dict[str, Path]
) -> None:
    page = _as_loaded(browser, page_of["product"])
    predictor = Predictor(*surveyed, model="product")
    for name in ("size_mean", "read_frac", "process_num", "unique_bytes"):
        page.ask(_OVER, name)
        page.ask(_SET, name, 7)
        page.wait("leadlineWhatIf.draw()")
        chart = page.ask(_CHART)
        assert chart["key"].split(" ")[0] == name
        assert chart["points"] >= 5
        assert chart["xs"] == sorted(chart["xs"])
        place = Workload(**page.ask(_PLACE))
        at = min(range(chart["points"]), key=lambda each: abs(chart["xs"][each] - chart["mark"]))
        assert chart["xs"][at] == pytest.approx(chart["mark"], abs=0.5)
        words = chart["words"][at].replace("\N{NO-BREAK SPACE}", " ")
        assert format_value(name, getattr(place, name)).replace(" processes", "") in words
        assert format_rate_ci(predictor.predict(place).throughput_mb_s) in words


def test_the_chart_leaves_out_what_was_not_surveyed_and_says_so(
    browser: Any, page_of: dict[str, Path]
) -> None:
    page = _as_loaded(browser, page_of["product"])
    page.wait("leadlineWhatIf.draw()")
    whole = page.ask(_CHART)
    page.ask(_SET, "unique_bytes", 999)
    page.ask(_SET, "size_mean", 999)
    page.wait("leadlineWhatIf.draw()")
    part = page.ask(_CHART)
    assert not whole["gaps"]
    assert part["gaps"]
    assert part["points"] < whole["points"]
    assert part["mark"] == pytest.approx(max(part["xs"]), abs=0.5)


_EVERY_OTHER_SIZE = """
const input = document.getElementById('what-if-unique_bytes'), found = [];
const warnings = document.getElementById('what-if-warnings');
for (let place = 0; place < input.max; place += 2) {
  input.value = place;
  input.dispatchEvent(new Event('input'));
  const { unique_bytes } = leadlineWhatIf.current();
  found.push({unique_bytes, hidden: warnings.hidden, text: warnings.textContent});
}
return found;
"""


def test_the_boundary_warning_stands_only_near_a_boundary(
    browser: Any, surveyed: tuple[Survey, tuple[Measurement, ...]], page_of: dict[str, Path]
) -> None:
    page = _as_loaded(browser, page_of["product"])
    ranges = Ranges(surveyed[0])
    shown = 0
    said = page.ask(_EVERY_OTHER_SIZE)
    for each in said:
        near = ranges.boundary_zone(each["unique_bytes"]) is not None
        assert each["hidden"] != near
        assert ("region boundary: " in each["text"]) == near
        shown += near
    assert 0 < shown < len(said) / 2


@pytest.mark.parametrize("model", MODELS)
def test_a_survey_without_curves_says_why_nothing_can_be_predicted(model: str) -> None:
    survey = made.empty()
    reason = "no level of this survey has curves yet; finish it: leadline survey /srv/data --resume"
    assert what_if_document(survey, (), model) == reason


def test_a_page_without_a_prediction_has_no_sliders() -> None:
    whole = made.two_region()
    survey = msgspec.structs.replace(whole, families=())
    html = render_html(survey, made.points(whole))
    assert "No prediction: no level of this survey has curves yet" in html
    assert "what-if-controls" not in html
    assert "leadline-what-if" not in html


def test_a_level_without_curves_cannot_be_chosen() -> None:
    survey = made.stopped()
    end = survey.regions[0].high_bytes
    assert max(_slider(survey, "unique_bytes")["values"]) == end < survey.regions[1].high_bytes
    assert _slider(survey, "seq_frac")["values"] == [0.5]
    html = survey_pages.html_of("stopped")
    choices = re.findall(r'<option value="(\w+)">', html)
    assert choices == ["unique_bytes", "size_mean", "read_frac"]
