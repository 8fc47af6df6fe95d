import subprocess
import sys

from graphite_gen.cli.main import COMMANDS

HEAVY = ("torch", "networkx", "numpy", "scipy", "h5py", "rich")
SCRIPT = """
import sys
from graphite_gen.cli.main import main
for line in ([], ["--help"], *([name, "--help"] for name in sys.argv[1].split())):
    try:
        main(line)
    except SystemExit as end:
        assert end.code in (0, 2), line
sys.stderr.write("LOADED " + " ".join(sys.modules))
"""


def test_help_loads_no_heavy_module() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, " ".join(COMMANDS)], capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.rpartition("LOADED ")[2].split())

    assert "click" in loaded
    assert loaded.isdisjoint(HEAVY)
