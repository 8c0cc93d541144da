"""Store an attention map for the documentation: its data, and a picture of it.

    regard predict MODEL "TEXT" --picture page.html
    python docs/attention_map.py page.html docs/maps/NAME [--row N] [--heads]

`docs/maps/NAME.png` in a page is then a map to explore on the site, and a picture elsewhere. Needs
Chromium, and Sphinx, which `make docs` installs. `docs/maps/make.sh` has all commands.
"""

import argparse
import io
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops
from site_maps import compact_json, figure_end, figure_start, viewer_script, viewer_style

from regard.core.files import atomic_write
from regard.serving import web

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_SCALE = 2
_COLOURS = 64
# Only the map: a picture cannot be explored.
_STYLE = """
html { color-scheme: light; } body { margin: 0; padding: 8px; max-width: none; background: #fff; }
.attention-viewer { --surface: #fff; margin: 0; width: fit-content; }
.attention-viewer .attention-map > :first-child, .attention-viewer .caption, figcaption,
.attention-viewer details, .attention-viewer .row-mark { display: none; }
"""


def read_data(page: Path, row: int, with_heads: bool) -> dict[str, Any]:
    """Read what a map needs from a page of `regard predict --picture`."""
    text = page.read_text(encoding="utf-8")
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    if match is None:
        raise SystemExit(f"{page} is no page of `regard predict --picture`.")
    data = json.loads(match[1])
    prediction = data["predictions"][row]
    names = ("inputs", "answer", "answer_kind", "looks", *(["heads"] if with_heads else []))
    return {
        "contract": {name: data["contract"].get(name) for name in names},
        "images": data["images"],
        "inputs": prediction["inputs"],
        "outputs": prediction["outputs"],
        "heads": prediction["heads"] if with_heads else None,
    }


def draw(data: str) -> bytes:
    """Draw a map in a browser, as a PNG file without margins."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        raise SystemExit("Chromium was not found.")
    style = (web.PAGE_FOLDER / "style.css").read_text(encoding="utf-8") + viewer_style() + _STYLE
    page = (
        f'<!doctype html><meta charset="utf-8"><style>{style}</style>'
        f'{figure_start()}<img alt="">{figure_end(data, "")}<script>{viewer_script()}</script>'
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "page.html").write_text(page, encoding="utf-8")
        command = [
            *(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *(f"--force-device-scale-factor={_SCALE}", "--window-size=1600,1200"),
            *(f"--user-data-dir={folder}/profile", f"--screenshot={folder}/map.png"),
            *("--virtual-time-budget=3000", Path(folder, "page.html").as_uri()),
        ]
        subprocess.run(command, check=True, capture_output=True)
        image = Image.open(Path(folder, "map.png")).convert("RGB")
        image.load()
    box = ImageChops.difference(image, Image.new("RGB", image.size, "#fff")).getbbox()
    if box is None:
        raise SystemExit("The map is empty.")
    margin = 8 * _SCALE
    box = (0, 0, min(box[2] + margin, image.width), min(box[3] + margin, image.height))
    buffer = io.BytesIO()
    image.crop(box).quantize(_COLOURS).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", type=Path, help="page of `regard predict --picture`")
    parser.add_argument("target", type=Path, help="files to write, without a suffix")
    parser.add_argument("--row", type=int, default=0, help="row of the page, from 0")
    parser.add_argument("--heads", action="store_true", help="store the weights of all heads too")
    arguments = parser.parse_args()
    data = compact_json(read_data(arguments.page, arguments.row, arguments.heads))
    arguments.target.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(arguments.target.with_suffix(".json"), data)
    picture = draw(data)
    arguments.target.with_suffix(".png").write_bytes(picture)
    print(f"{arguments.target}: {len(data):,} bytes of data, picture of {len(picture):,} bytes")


if __name__ == "__main__":
    main()
