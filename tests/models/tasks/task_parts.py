"""Parts of tasks in tests: rows as Preprocess stores them, and what is exported."""

from types import SimpleNamespace

import numpy as np
import tensorflow as tf

from regard.core.ragged import Ragged
from regard.models import tasks

NO_MODEL = SimpleNamespace(weights=[])


def as_rows(features):
    """The columns of transformed rows as a training reads them."""
    rows = {}
    for name, column in features.items():
        if isinstance(column, tf.RaggedTensor):
            rows[name] = Ragged(column.values.numpy(), column.row_splits.numpy())
        else:
            array = np.asarray(column)
            lengths = np.full(len(array), int(np.prod(array.shape[1:])))
            rows[name] = Ragged.from_lengths(array.reshape(-1), lengths)
    return rows


def one_row(features, number=0):
    """A transformed row as the values of its columns."""
    return {name: column[number] for name, column in as_rows(features).items()}


def module_of(task, model=NO_MODEL, tokenizers=None, settings=None, search=None, **options):
    """The module that a task exports."""
    served = tasks.get_served_module(task)
    return served(tasks.describe(task), model, tokenizers or {}, settings, search, **options)


def batch_decoding(task, model, processors=None, settings=None, search=None):
    """Return a function from a batch to the outputs and the references of a training."""
    network = tasks.get_network(task)
    decoder = network.batch_decoder(model, processors or {}, settings, search)

    def decode(batch):
        computed = decoder.compute(*(tf.constant(batch[name]) for name in decoder.inputs))
        return decoder.outputs(computed.numpy(), batch), decoder.references(batch)

    return decode


def check_output_names(contract):
    """Check that a description lists what the table of predictions has columns for."""
    description = tasks.describe(contract["task"])
    names = {description.output, *description.other_outputs, "score"}
    assert set(contract["signatures"][contract["detail"]]["outputs"]) <= names
