"""The Python package as a notebook meets it: names, text for sizes, frames, charts, comparisons."""

from __future__ import annotations

import inspect
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from golden_cases import HERE, KINDS

import leadline
from leadline.api.frames import ChartsMissing, NoChart, workload_of
from leadline.errors import WorkloadError

VERBS = ("cache", "compare", "files", "measure", "open", "peak", "predict", "stream", "surface")
CHARTED = [name for name in KINDS if name != "survey-unfinished"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("notebook") / "s.sqlite"
    return str(shutil.copyfile(HERE / "store-today.sqlite", place))


def test_the_package_lists_its_interface_and_nothing_else() -> None:
    assert {*VERBS, "survey", "Workload", "Access", "__version__"} <= {*dir(leadline)}
    assert dir(leadline) == sorted(leadline.__all__)
    assert leadline.__version__.count(".") == 2


@pytest.mark.parametrize("name", [*VERBS, "survey"])
def test_every_verb_says_what_it_takes_and_returns(name: str) -> None:
    verb = getattr(leadline, name)
    signature = inspect.signature(verb)
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty
        told = inspect.getdoc(inspect.unwrap(verb)) or ""
        if name != "surface":  # it says once that its arguments are those of peak
            assert f"{parameter.name}: " in told, parameter.name


def test_sizes_and_shares_are_taken_as_text() -> None:
    text: dict[str, Any] = {"unique_bytes": "100MiB", "size_mean": "4k", "read_frac": "80%"}
    assert leadline.Workload(**text) == leadline.Workload(100 * 2**20, 4096, read_frac=0.8)
    with pytest.raises(WorkloadError, match="unique_bytes: 'much' is not a size"):
        leadline.Workload(**text | {"unique_bytes": "much"})
    with pytest.raises(WorkloadError, match="process_num is 0"):
        leadline.Workload(**text | {"process_num": "0"})


def test_a_stored_survey_predicts_by_its_name(store: str) -> None:
    words = "size_mean=64KiB,unique_bytes=2GiB,read_frac=60%,seq_frac=0.6,process_num=8"
    (found,) = leadline.predict("atlas", words, store=store)
    assert found.throughput_mb_s.covers(found.throughput_mb_s.value)
    assert found.workload.read_frac == 0.6


@pytest.mark.parametrize("kind", CHARTED)
def test_every_kind_of_study_plots_and_shows_itself(kind: str, store: str) -> None:
    study = leadline.open(KINDS[kind], store=store)
    chart = study.plot()
    assert chart.to_dict()["$schema"]
    assert study._repr_html_().startswith("<h4>")
    with pytest.raises(NoChart, match="there is no chart 'other'; there are "):
        study.plot("other")


def test_a_comparison_is_a_table_a_chart_and_a_document(store: str) -> None:
    found = leadline.compare("atlas", "boreas", fail_if="slower=5%", store=store)
    assert found.document.gate is not None
    assert found.document.gate.failed
    assert found.to_dict()["contenders"][0]["name"] == "atlas"
    assert found._repr_html_().count("<tr>") == 1 + len(found.document.pairs)
    assert repr(found).endswith("| atlas")
    assert found.plot().to_dict()["$schema"]
    one = leadline.compare("atlas", "boreas", workloads=["bs=64k,size=1g,rw=rw"], store=store)
    assert len(one.document.pairs) == 1


def test_the_file_cache_is_found_from_python(tmp_path: Path) -> None:
    found = leadline.cache(
        "sim:no-cache", budget="60s", sizes_only=True, store=str(tmp_path / "s.sqlite")
    )
    assert found.kind == "cache"
    assert found._repr_html_().startswith("<h4>study of a page cache ")


def test_without_charts_a_plot_names_what_to_install(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = leadline.open(KINDS["validation"], store=store)

    def lacking(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'altair'", name="altair")

    monkeypatch.setattr("leadline.studies.validation.charts.charts_of", lacking)
    with pytest.raises(ChartsMissing, match=r"pip install 'leadline\[charts\]'"):
        study.plot()
    assert "altair" not in repr(sys.exc_info())


def test_words_that_are_arguments_are_refused_and_not_dropped() -> None:
    with pytest.raises(WorkloadError, match="direct is not of the workload"):
        workload_of("bs=4k,rw=randread,size=64m,direct=1")
    assert workload_of("bs=4k,rw=randread,size=64m").size_mean == 4096
