"""The number format that a training computes in."""

from collections.abc import Sequence

from regard.components.settings.trainer import NODE, TrainingJob
from regard.components.trainer.backends import current_backend
from regard.core import events
from regard.core.processor import describe_slow_precision, read_features

# NVIDIA's compute capabilities from which tensor cores support a format: Ampere and Volta.
_FORMATS = {(8, 0): "mixed_bfloat16", (7, 0): "mixed_float16"}


def resolve_precision(job: TrainingJob) -> TrainingJob:
    """Return the job with the format that is fast on these GPUs for the precision ``auto``.

    Report another one that is slow on this machine.

    A training in a mixed format gets a checkpoint folder of its own, since its state differs: in
    float16, there is the scale of the loss.
    """
    capabilities = current_backend().compute_capabilities()
    setting = job.config.training.precision
    if setting != "auto":
        text = describe_slow_precision(setting, read_features())
        if text and not capabilities:
            events.emit("note", node=NODE, text=text)
        return job
    precision, run = fast_precision(capabilities), job.run
    if precision != "float32":
        run = run.model_copy(update={"checkpoint_key": f"{run.checkpoint_key}-{precision}"})
        events.emit("note", node=NODE, text=f"training.precision: auto is {precision} on this GPU")
    config = job.config.with_training(precision=precision)
    return job.model_copy(update={"config": config, "run": run})


def fast_precision(capabilities: Sequence[tuple[int, int]]) -> str:
    """The format that is fast on all GPUs of these compute capabilities; float32 without GPUs."""
    if capabilities:
        for capability, name in _FORMATS.items():
            if min(capabilities) >= capability:
                return name
    return "float32"
