"""Write an HTML page with the attention of predictions; it uses the scripts of the web page."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from regard.core.errors import NotFoundError, UserError
from regard.core.files import atomic_write
from regard.pipeline.prediction.input_rows import InputRow
from regard.pipeline.prediction.output_format import one_line, to_list
from regard.serving import web
from regard.serving.attention_heads import head_weights
from regard.serving.contract import input_kinds
from regard.serving.saved_model import Model, Prediction

SUFFIX = ".html"
_TEMPLATE = Path(__file__).with_name("attention_page.html.jinja")
_SCRIPTS = ("dom.js", "attention.js", "heads.js", "predictions.js")
_MAX_HEADS_ROWS = 20  # with the attention of all heads, about 1 MB each
_IMAGE_TYPES = {b"\xff\xd8": "jpeg", b"\x89P": "png", b"BM": "bmp"}


def validate_path(path: Path) -> None:
    """Check the name of the file.

    Raises:
        UserError: it has another suffix, or its folder does not exist.
    """
    if path.suffix.lower() != SUFFIX:
        suffix = f"`{path.suffix}`" if path.suffix else "without a suffix"
        raise UserError(f"Unsupported picture format {suffix}. Use `{SUFFIX}`.", where=str(path))
    if not path.absolute().parent.is_dir():
        raise NotFoundError("The folder does not exist.", where=str(path.absolute().parent))


def write(
    path: Path, title: str, model: Model, rows: Sequence[tuple[InputRow, Prediction]]
) -> None:
    """Write one self-contained page with the attention of all rows, and of all heads of the first.

    Args:
        path: the file, replaced atomically.
        title: the title of the page.
        model: the model.
        rows: rows with their predictions.
    """
    predictions = [_to_json(row, prediction) for row, prediction in rows]
    images = [name for name, kind in input_kinds(model.contract).items() if kind.names_file]
    data: dict[str, Any] = {
        "contract": model.contract,
        "images": images,
        "predictions": predictions,
    }
    for entry, (row, prediction) in zip(data["predictions"][:_MAX_HEADS_ROWS], rows, strict=False):
        answer = prediction.outputs[model.contract["answer"]]
        entry["heads"] = head_weights(model, row.values or {}, answer)
    template = jinja2.Template(_TEMPLATE.read_text(encoding="utf-8"), autoescape=True)
    style = "".join((web.PAGE_FOLDER / name).read_text(encoding="utf-8") for name in web.STYLES)
    icon = (web.PAGE_FOLDER / "icon.svg").read_text(encoding="utf-8")
    script = web.bundle_scripts(*(web.PAGE_FOLDER / name for name in _SCRIPTS))
    page = template.render(title=title, data=data, script=script, style=style, icon=icon)
    atomic_write(path, page)


def _to_json(row: InputRow, prediction: Prediction) -> dict[str, Any]:
    attention, kinds = prediction.contract["looks"], input_kinds(prediction.contract)
    assert attention is not None
    names = {attention["weights"], attention["rows"], attention["columns"]}
    return {
        "title": row.description,
        "output": one_line(prediction),
        "inputs": {
            name: _data_url(value) if kinds[name].names_file else value
            for name, value in (row.values or {}).items()
        },
        "outputs": {
            name: to_list(prediction.outputs[name]) for name in names & set(prediction.outputs)
        },
    }


def _data_url(image: bytes) -> str:
    kind = _IMAGE_TYPES.get(image[:2], "png")
    return f"data:image/{kind};base64,{base64.b64encode(image).decode('ascii')}"
