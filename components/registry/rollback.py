"""Rolls production back: publishes the model of an earlier version again, as the newest.

Servers take the highest version, so they switch to it as to any new version; the next run, which
compares with production, compares with it as well. The new record is that of the earlier version,
so that its lineage is the model's, with ``rollback_of`` (the version whose model it is) and
``rolled_back_from`` (the version that it replaces). The replaced version stays, and its model is
*withdrawn*: a run that makes the same model again does not push it.

Moving the bad version aside instead would free its number for the next push, which servers that
know the number never load; going back several steps would take several renames; and versions that
were compared with the bad one would refer to a missing version.
"""

from regard.components.registry import publish
from regard.components.registry.records import VersionRecord, WithdrawnModel, read_record
from regard.components.registry.store import Registry
from regard.core.errors import NotFoundError, UserError
from regard.serving.content_digest import content_digest

# Fields of the version itself, not of its model.
_VERSION_FIELDS = {
    *("name", "version", "created", "withdrawn", "rollback_of", "rolled_back_from", "reason")
}


def rollback(
    registry: Registry, name: str, version: int | None = None, reason: str | None = None
) -> VersionRecord:
    """Publish an earlier version's model again, and return the record of the new version.

    Args:
        registry: the registry.
        name: the model's name.
        version: the version to go back to; None: the newest before the live one that production
            was not rolled back from.
        reason: a text for the record.

    Raises:
        UserError: there is no such version; it is live already or has been modified; or another
            version was pushed meanwhile.
        OSError: the registry cannot be written.
    """
    live, folder = registry.number(name), registry.root / name
    with publish.change_lock(folder):  # no version is pruned while it is read and copied
        publish.remove_leftovers(folder)
        if version is None:
            source = _version_before(registry, name, live)
        else:
            source = registry.number(name, version)
        record = read_record(folder / str(source))
        digest = publish.recorded_digest(folder / str(source))
        live_digest = publish.recorded_digest(folder / str(live))
        if digest == live_digest:
            message = f"The model of {name}@{source} is live already, as {name}@{live}"
            raise UserError(message, remedy=f"`regard registry list {name}` lists the versions.")

        def make_record(newest: int | None) -> VersionRecord:
            if newest != live:
                raise UserError(
                    f"{name}@{newest} was published while {name}@{live} was being replaced",
                    remedy="Nothing has changed. Check the new version, and run this command again"
                    " to roll back from it.",
                )
            live_record = read_record(folder / str(live))
            bad = WithdrawnModel(version=_original_version(live, live_record), digest=live_digest)
            others = [
                model
                for model in live_record.withdrawn
                if model.digest not in (digest, live_digest)
            ]
            fields = {
                **record.model_dump(exclude_unset=True, exclude=_VERSION_FIELDS),
                "digest": digest,
                "rollback_of": _original_version(source, record),
                "rolled_back_from": live,
                **({"reason": reason} if reason else {}),
                "withdrawn": [*others, bad],
            }
            return VersionRecord.model_validate(fields)

        with publish.staging_folder(folder) as staging:
            publish.copy_model(registry.complete(folder / str(source)), staging)
            if content_digest(staging) != digest:
                raise UserError(
                    f"The files of {name}@{source} have changed since it was pushed",
                    where=str(folder / str(source)),
                    remedy="Production is unchanged. Restore the files, or name another version:"
                    f" `regard registry list {name}` lists them.",
                )
            return publish.publish(folder, staging, make_record)


def _original_version(version: int, record: VersionRecord) -> int:
    """Return the version that a version's model was first pushed as."""
    return version if record.rollback_of is None else record.rollback_of


def _version_before(registry: Registry, name: str, live: int) -> int:
    """Return the default version to go back to."""
    folder = registry.root / name
    record = read_record(folder / str(live))
    excluded = {
        publish.recorded_digest(folder / str(live)),
        *(model.digest for model in record.withdrawn),
    }
    original = _original_version(live, record)
    for number in reversed(registry.versions(name)):
        if number < original and publish.recorded_digest(folder / str(number)) not in excluded:
            return number
    raise NotFoundError(
        f"There is no version to go back to before {name}@{live}",
        where=str(folder),
        remedy=f"`regard registry list {name}` lists the versions. Name the version to bring back"
        " one that production was rolled back from.",
    )
