"""Invalid, unusual and huge requests, which `server` sends."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator

MB = 1 << 20
SCRIPTS = {
    "Latin": "the cat ",
    "Cyrillic": "слово ",
    "Greek": "λόγος ",
    "Arabic": "كلمة ",
    "Hebrew": "מילה ",
    "Devanagari": "शब्द ",
    "Thai": "คำศัพท์",
    "Chinese": "汉字",
    "Japanese": "ことば",
    "Korean": "단어 ",
    "combining marks": "\u0301\u0323",
    "emoji": "👩‍👩‍👧",
}


def worst_bodies() -> Iterator[tuple[str, bytes]]:
    """Yield the most expensive bodies of REST requests, with a name for each."""
    size = 15 * MB
    for name, word in SCRIPTS.items():
        text = word * (size // len(word.encode()))
        yield f"one text, {name}", json.dumps({"instances": [text]}, ensure_ascii=False).encode()
    marks = SCRIPTS["combining marks"] * (size // 256 // 4)
    yield "256 texts", json.dumps({"instances": [marks] * 256}, ensure_ascii=False).encode()
    yield "align, 64 texts", full_batch()
    yield "values", b'{"instances": [' + b"1," * (size // 2) + b"1]}"
    yield "objects", b'{"instances": [' + b"{}," * (size // 3) + b"1]}"
    yield "depth", b'{"instances": ' + b"[" * (size // 2) + b"]" * (size // 2) + b"}"
    yield "integer", b'{"instances": [' + b"9" * size + b"]}"
    yield "base64", b'{"instances": [{"b64": "' + base64.b64encode(bytes(11 * MB)) + b'"}]}'
    yield "64 MB", b'{"instances": ["' + b"a" * (64 * MB) + b'"]}'


def full_batch() -> bytes:
    """Return a body with 64 texts of 250 characters for the signature ``align``."""
    rows = {"signature_name": "align", "instances": ["ab " * 83] * 64}
    return json.dumps(rows).encode()


def rest_attack(draw: random.Random, name: str, number: int) -> tuple[bytes, str]:
    """Return the body and path of an invalid or unusual request."""
    path = f"/v1/models/{name}:predict"
    if number % 2000 == 0:  # the worst take seconds
        worst = list(worst_bodies())
        return worst[number // 2000 % len(worst)][1], path
    kind = draw.randrange(6)
    if kind == 0:
        text = draw.choice(list(SCRIPTS.values())) * draw.randrange(2 ** draw.randrange(14))
        rows = [text] * draw.choice([1, 1, 2, 300])
        return json.dumps({"instances": rows}).encode(), path
    if kind == 1:
        depth = draw.randrange(2000)
        return b'{"instances": ' + b"[" * depth + b"1" + b"]" * depth + b"}", path
    if kind == 2:
        return json.dumps(
            {"instances": [draw.randrange(10 ** draw.randrange(1, 4000))]}
        ).encode(), path
    if kind == 3:
        body = bytearray(
            json.dumps({"instances": ["20 Nov 2026"], "signature_name": "align"}), "ascii"
        )
        for _ in range(draw.randrange(1, 6)):
            body[draw.randrange(len(body))] = draw.randrange(256)
        return bytes(body), path
    if kind == 4:
        version = draw.choice([2**63, 10**30, -1, "0x1", "%00", "..%2f..", "1" * 5000])
        return b"{}", f"/v1/models/{name}/versions/{version}:predict"
    return draw.randbytes(2 ** draw.randrange(16)), path


def grpc_attack(draw: random.Random, name: str, number: int, size: int = 0) -> bytes:
    """Return an invalid or unusual message."""
    from tensorflow_serving.apis import predict_pb2

    if number % 2001 == 1 or size:
        size = size or draw.choice([1, 4, 15]) * MB
        kind = number // 2 % 6 if size else draw.randrange(6)
        request = predict_pb2.PredictRequest()
        request.model_spec.name = name
        field = [b"\x42\x00", b"\x72\x00", b"\x7a\x00", b"\x12\x02\x12\x00", b"\x3a\x01\x01", b""][
            kind
        ]
        tensor = request.inputs["source"]
        tensor.dtype = 7
        if field:
            tensor.MergeFromString(field * (size // len(field)))
            return request.SerializeToString()
        return request.SerializeToString() + b"\x12\x00" * (size // 2)
    kind = draw.randrange(4)
    request = predict_pb2.PredictRequest()
    request.model_spec.name = name
    if kind == 0:  # one value that stands for many
        for index in range(draw.randrange(1, 14)):
            tensor = request.inputs[draw.choice(["source", f"x{index}"])]
            tensor.dtype = draw.choice([1, 3, 7, 9])
            tensor.float_val.append(1)
            for _ in range(draw.randrange(4)):
                tensor.tensor_shape.dim.add().size = 2 ** draw.randrange(40)
        return request.SerializeToString()
    content = bytearray(predict_message(name, ["20 Nov 2026"] * draw.randrange(1, 4)))
    if kind == 1:
        for _ in range(draw.randrange(1, 5)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        return bytes(content)
    if kind == 2:
        return bytes(content[: draw.randrange(len(content))])
    return draw.randbytes(draw.randrange(2000))


def predict_message(name: str, texts: list[str]) -> bytes:
    """Return a valid Predict message."""
    from tensorflow_serving.apis import predict_pb2

    request = predict_pb2.PredictRequest()
    request.model_spec.name = name
    tensor = request.inputs["source"]
    tensor.dtype = 7  # string
    tensor.tensor_shape.dim.add().size = len(texts)
    tensor.string_val.extend(text.encode() for text in texts)
    return request.SerializeToString()
