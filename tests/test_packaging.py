import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr

    return next(folder.glob("*.whl"))


@pytest.mark.slow
def test_the_wheel_contains_commands_and_models_in_one_package(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert "graphite_gen/cli/main.py" in names
    assert "graphite_gen/checkpoints/barabasi/model.safetensors" in names
    assert "graphite_gen/families/entropies.json" in names
    assert {f"graphite_gen/viz/report/page.{suffix}" for suffix in ("html", "css", "js")} <= set(names)
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"graphite_gen"}


@pytest.mark.slow
def test_a_wheel_installed_in_an_empty_environment_samples_from_a_bundled_model(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "environment"
    venv.create(place, with_pip=False)
    site = next(place.glob("lib/python*/site-packages"))
    # Dependencies are linked from this environment, so that nothing is downloaded.
    lent = tmp_path / "lent"
    lent.mkdir()
    for package in Path(nx.__file__).resolve().parents[1].iterdir():
        if not package.name.startswith(("graphite", "__editable__", "__pycache__", "distutils-precedence")):
            (lent / package.name).symlink_to(package)
    (site / "lent.pth").write_text(f"{lent}\n", encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP"))}

    def run(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr

        return done.stdout

    # Without an index, pip installs only if all declared dependencies are present.
    run(place / "bin" / "python", "-m", "pip", "install", "--no-index", "--disable-pip-version-check", wheel)
    run(place / "bin" / "graphite-gen", "sample", "-n", "5", "--model", "barabasi", "-o", "out.graphml")

    assert len(nx.read_graphml(tmp_path / "out.graphml")) >= 10
    where = run(place / "bin" / "python", "-c", "import graphite_gen.cli; print(graphite_gen.cli.__file__)")
    assert where.startswith(str(site))
