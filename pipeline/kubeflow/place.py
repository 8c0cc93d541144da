"""A cluster as the place where a graph runs.

While the graph is made, on whatever machine, nothing of the cluster is read: neither its data nor
its registry need be there. What is resolved when:

- made into the graph: the whole configuration; the digests of Regard's code; the names of the
  data's files, with ``${REGARD_HOME}`` as ``kubeflow.home``. A pattern such as ``train-*.tsv``
  stays one.
- by CorpusGen, when it runs: which spans and files there are, and the fingerprint of their
  content. The findings hand it on to the version's record and to the report.
- by the Trainer: the folder of its checkpoints, by the content of the examples and of the files of
  word vectors, so that a training goes on where the same one was killed.
- by ExampleValidator and by the Predictor: the version in production, which is the newest in the
  registry; the one reads the profile of its data, the other asks it.
- when a run starts: its parameters (``components.parameters``), by default the configuration's.

Nothing is cached. What Kubeflow's cache knows of the data are the names of its files, so a run
would take yesterday's examples for today's, and with them all that was made of them.
"""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from components.errors import UserError
from components.registry.rival import LATEST
from pipeline import keys
from pipeline.kubeflow.settings import parameters_of, section
from pipeline.place import Place, corpus_data
from pipeline.workspace import Workspace

if TYPE_CHECKING:
    from pipeline.config import Config


def cluster(config: Config) -> Place:
    """The cluster of a configuration.

    Raises:
        UserError: the configuration names none, or asks for a warm start, whose model would be
            that of the day when the graph was made; or its Beam jobs run outside of the nodes.
    """
    from tfx.orchestration.data_types import RuntimeParameter

    if config.training.warm_start is not None:
        raise UserError(
            "a training on a cluster cannot start from another model yet",
            where="training.warm_start",
            remedy="Leave it out, or run the pipeline on one machine.",
        )
    if not config.beam.local:
        raise UserError(
            f"{config.beam.runner} would not see the local folders of the nodes",
            where="beam.runner",
            remedy="Choose in_process or processes, which run inside of each node.",
        )
    kubeflow = section(config)
    compared = config.evaluation.production is not None
    versions = str(PurePosixPath(kubeflow.served, config.name))
    checkpoints = Workspace(Path(kubeflow.home)).pipeline(config.name).checkpoints
    return Place(
        artifacts=kubeflow.pipeline_root or "",
        registry=kubeflow.served,
        data=json.dumps(corpus_data(config), sort_keys=True),
        checkpoints={
            "checkpoints": str(checkpoints / keys.training_key(config, "", {})),
            "checkpoints_by_content": True,
        },
        beam=config.beam.arguments(),
        cached=False,
        production=versions if compared else "",
        production_version=LATEST if compared else "",
        production_profile=json.dumps({"version": LATEST, "versions": versions})
        if compared
        else "",
        run_parameters={
            name: RuntimeParameter(name=name, ptype=int, default=value)
            for name, value in parameters_of(config).items()
        },
    )
