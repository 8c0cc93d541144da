"""The Augmenter's executor: published models change the rows of the train split."""

import functools
import json
import os
import shutil
import uuid
from pathlib import Path

from tfx.components.util import examples_utils
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import artifact_utils

from regard.components.augmenter.model_pass import NODE, run_pass
from regard.components.augmenter.train_rows import TrainRows
from regard.components.common.artifact_files import examples_split, split_shards
from regard.components.common.artifact_types import Artifacts, Properties
from regard.components.data.sources import expand_all
from regard.components.registry.starting_models import find_teachers
from regard.components.registry.store import Registry
from regard.components.settings.augmentation import AugmentationConfig
from regard.components.settings.trainer import StartingModel
from regard.core import events, owned_folders
from regard.core.files import write_json
from regard.core.kinds import feature_from_json

_WORK_PREFIX = ".writing-"


class AugmenterExecutor(BaseBeamExecutor):
    """Writes the ``augmented_examples`` and ``augmentation.json``."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Change the train split, and copy the files of the others.

        Raises:
            UserError: a model or a file is missing, a model refuses a row, or no pair is kept.
            SavedModelError: a model does not fit its contract.
        """
        settings = json.loads(exec_properties["settings"])
        config = AugmentationConfig.model_validate(settings["augmentation"])
        source = artifact_utils.get_single_instance(input_dict["examples"])
        target = artifact_utils.get_single_instance(output_dict["augmented_examples"])
        features = [feature_from_json(entry) for entry in settings["features"]]
        models = json.loads(exec_properties["models"]) or find_teachers(
            config,
            Registry(exec_properties["registry"]),
            settings["task"],
            [tag for feature in features for tag in feature.tags],
        )
        for folder in Path(target.uri).glob(f"{_WORK_PREFIX}*"):  # of a killed attempt
            owned_folders.remove(folder, owned_folders.SCRATCH)
        work = Path(target.uri, f"{_WORK_PREFIX}{uuid.uuid4().hex[:8]}")
        owned_folders.create(work, owned_folders.SCRATCH)
        rows = TrainRows(
            run=functools.partial(
                run_pass,
                self._make_beam_pipeline,
                Path(exec_properties["folder"]),
                settings["batch_size"],
            ),
            models={key: StartingModel.model_validate(model) for key, model in models.items()},
            folder=str(work),
            features=features,
            texts=expand_all(settings["root"], settings["monolingual"], "data.monolingual"),
            encoding=settings["encoding"],
        )
        splits = {
            name: split_shards(examples_split(source, name))
            for name in artifact_utils.decode_split_names(source.split_names)
        }
        steps: dict[str, str] = {}
        for name, section in config:
            if section is not None:
                splits["train"], steps[name] = getattr(rows, name)(splits["train"], section)
                events.emit("note", node=NODE, text=steps[name])
        for name, shards in splits.items():
            split = os.path.join(target.uri, f"Split-{name}")
            os.makedirs(split, exist_ok=True)
            for i, path in enumerate(shards):
                final = os.path.join(split, f"data_tfrecord-{i:05d}-of-{len(shards):05d}.gz")
                if Path(path).parent == work:
                    os.replace(path, final)
                else:
                    shutil.copyfile(path, final)
        owned_folders.remove(work, owned_folders.SCRATCH)
        target.split_names, target.span = source.split_names, source.span
        examples_utils.set_payload_format(target, examples_utils.get_payload_format(source))
        findings = Path(artifact_utils.get_single_uri(output_dict["findings"]))
        write_json(findings / "augmentation.json", {"steps": steps, "models": models})
