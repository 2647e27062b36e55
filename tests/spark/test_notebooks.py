"""The notebooks of the documentation run from top to bottom, with the results that they describe."""

import os
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode
from tests.patience import patient
from tests.spark.brokers import BrokerUnderTest

from pyspark_warren.http import HttpApi, path

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "docs" / "notebooks"
NAMES = sorted(one.name for one in NOTEBOOKS.glob("*.ipynb"))
CELL_S_MAX = patient(200)
# Jupyter stores its own files, by default in the home of its user.
FOLDERS = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
Execute = Callable[[str], str]


@pytest.fixture
def execute(warren: BrokerUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Execute:
    """Runs a notebook as Jupyter does, and returns the outputs of its cells; a failing cell raises."""
    for folder in FOLDERS:
        monkeypatch.setenv(folder, str(tmp_path / folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT / "src", ROOT))))
    monkeypatch.setenv("WARREN_AMQP_URI", warren.options["uri"])
    monkeypatch.setenv("WARREN_URI", warren.options["managementUri"])

    def run(name: str) -> str:
        notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
        client = NotebookClient(
            notebook, timeout=CELL_S_MAX, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
        )
        client.execute()
        return "\n".join(shown(cell) for cell in notebook.cells if cell.cell_type == "code")

    return run


def shown(cell: NotebookNode) -> str:
    """The printed output of a cell, and its value as text."""
    found = []
    for output in cell.outputs:
        if output.output_type == "stream":
            found.append(output.text if output.name == "stdout" else "")
        else:
            found += [output.data.get("image/svg+xml", ""), output.data.get("text/plain", "")]
    return "".join(found)


def table(text: str, *columns: str) -> list[list[str]]:
    """The rows of the printed table of Spark that begins with these columns."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    (top,) = (at for at, cells in enumerate(lines) if tuple(cells[: len(columns)]) == columns)
    end = next(at for at, cells in enumerate(lines) if at > top + 1 and cells[0].startswith("+"))
    return lines[top + 2 : end]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_valid_and_committed_without_outputs(name: str) -> None:
    notebook = nbformat.read(NOTEBOOKS / name, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.metadata.kernelspec.name) == (4, "python3")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)


@pytest.mark.long
def test_the_notebook_for_data_engineers_reads_queues_as_tables(
    execute: Execute, warren: BrokerUnderTest
) -> None:
    text = execute("every-queue-is-a-dataframe.ipynb")
    assert "300 messages read, 300 still in the queue" in text
    sold = table(text, "product", "waiting")
    assert sorted(row[0] for row in sold) == ["coffee", "kettle", "tea"]
    assert sum(int(row[1]) for row in sold) == 200
    assert sum(int(row[2]) for row in sold) == 100
    assert text.count("<rect ") == 3
    assert "version 1 has 300 rows\nversion 2 has 360 rows" in text
    by_country = table(text, "country", "count")
    assert [row[0] for row in by_country] == ["de", "fr", "it"]
    assert sum(int(row[1]) for row in by_country) == 360
    assert sum(int(row[1]) for row in table(text, "product", "count")) == 360
    assert left_over(warren) == []


@pytest.mark.long
def test_the_notebook_for_operators_finds_dead_letters_and_redrives_them_once(
    execute: Execute, warren: BrokerUnderTest
) -> None:
    text = execute("dead-letters-and-the-past.ipynb")
    assert "75 charged" in text
    deaths = table(text, "queue", "reason", "exchange")
    assert [row[:5] for row in deaths] == [
        ["notebook.charges", "rejected", "", "25", "25"],
        ["notebook.charges", "maxlen", "", "20", "20"],
    ]
    by_tenant = {(row[0], row[1]): int(row[2]) for row in table(text, "reason", "headers.tenant")}
    assert by_tenant == {("rejected", "umbrella"): 25, ("maxlen", "acme"): 15, ("maxlen", "umbrella"): 5}
    assert "45 dead letters are still in the queue" in text
    assert "120 charges were published, 0 are ready" in text
    assert "15 would be published, 0 were" in text
    assert "15 of 15 messages published; second run: 0\n15\n" in text
    assert left_over(warren) == []


def left_over(place: BrokerUnderTest) -> list[str]:
    """What a notebook has declared and not deleted."""
    management = HttpApi(place.broker)
    found = [*management.get(path("queues", "/")), *management.get(path("exchanges", "/"))]
    found += management.get(path("policies", "/"))
    return [one["name"] for one in found if "notebook." in one["name"]]
