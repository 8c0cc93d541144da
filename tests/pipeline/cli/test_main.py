"""The command without the packages of the pipeline."""

import subprocess
import sys


def test_a_missing_package_names_the_extra(tmp_path):
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('no typer', name='typer')")
    command = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    command += "from regard.pipeline.cli.__main__ import main; main()"
    result = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr == (
        "The command needs the package 'typer'. Install the packages of the pipeline: "
        'pip install "regard[pipeline]"\n'
    )
