"""Production goes back to an earlier version: its model is published again, as the newest.

Servers take the highest number, so they load it beside the one that answers and then change over,
as they do with any new version; and whoever asks the registry what production runs, such as the
next run, which compares with it, gets the model that it went back to. The record of the new version
is the old one's, so that its lineage is that of the model, and says in ``rollback_of`` which
version's model it is, and in ``rolled_back_from`` which one it replaces. That one stays, with its
record, and is *withdrawn*: a run that makes the same model again does not push it.

To move the bad version aside instead would give its number to the next push, which servers that
know the number never load; going back by more than one step would be several renames; and what was
compared with the bad version would name one that is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.errors import UserError
from components.registry.publishing import (
    content_digest,
    copy,
    digest_of,
    locked,
    publish,
    remove_leftovers,
    withdrawn,
    workplace,
)
from components.registry.records import read_record
from components.registry.versions import Registry


@dataclass(frozen=True)
class RolledBack:
    """What a rollback has done.

    Attributes:
        version: the new version.
        of: the version whose model it is.
        before: the version that was live, and is withdrawn.
    """

    version: int
    of: int
    before: int


def rollback(
    registry: Registry, name: str, version: int | None = None, reason: str | None = None
) -> RolledBack:
    """Publishes an earlier version's model again.

    Args:
        registry: where.
        name: the model.
        version: which version's; None: that of the one before the live one which was not itself
            rolled back from.
        reason: is kept in the record.

    Raises:
        UserError: there is no such version, it is live already or no longer whole, or another one
            was pushed in the meantime.
        OSError: the registry cannot be written.
    """
    live, folder = registry.number(name), registry.root / name
    with locked(folder, wait=True):  # no version is pruned while it is looked for and copied
        remove_leftovers(folder)
        named = version is not None
        source = registry.number(name, version) if named else _before(registry, name, live)
        record = read_record(folder / str(source))
        digest, bad = digest_of(folder / str(source)), digest_of(folder / str(live))
        of = origin(source, record)
        if digest == bad:
            raise UserError(
                f"the model of {name}@{source} is live already, as {name}@{live}",
                remedy=f"`regard registry list {name}` tells what there is.",
            )

        def full(newest: int | None) -> dict[str, Any]:
            if newest != live:
                raise UserError(
                    f"{name}@{newest} was published while {name}@{live} was being replaced",
                    remedy="Nothing is changed. Look at the new version, and run this again if "
                    "production shall go back all the same.",
                )
            others = [
                one for one in withdrawn(folder / str(live)) if one["digest"] not in (digest, bad)
            ]
            away = {"version": origin(live, read_record(folder / str(live))), "digest": bad}
            return {
                **{key: value for key, value in record.items() if key not in _OWN},
                "digest": digest,
                "rollback_of": of,
                "rolled_back_from": live,
                **({"reason": reason} if reason else {}),
                "withdrawn": [*others, away],
            }

        with workplace(folder) as temporary:
            copy(folder / str(source), temporary)
            if content_digest(temporary) != digest:
                raise UserError(
                    f"{name}@{source} is no longer what was pushed: its files have changed",
                    where=str(folder / str(source)),
                    remedy="Production stays as it is. Bring the files back, or name another "
                    f"version: `regard registry list {name}` tells which there are.",
                )
            return RolledBack(publish(folder, temporary, full), of, live)


# What of a record is the version's own, and not its model's.
_OWN = (
    *("name", "version", "created", "withdrawn"),
    *("rollback_of", "rolled_back_from", "reason"),
)


def origin(version: int, record: Mapping[str, Any]) -> int:
    """The version that a version's model was first pushed as."""
    return record.get("rollback_of", version)


def _before(registry: Registry, name: str, live: int) -> int:
    """The version that production goes back to where none is named."""
    folder = registry.root / name
    bad = {one["digest"] for one in withdrawn(folder / str(live))}
    first = origin(live, read_record(folder / str(live)))
    digest = digest_of(folder / str(live))
    for number in reversed(registry.versions(name)):
        if number < first and digest_of(folder / str(number)) not in {digest, *bad}:
            return number
    raise UserError(
        f"there is no version to go back to before {name}@{live}",
        where=str(folder),
        remedy=f"`regard registry list {name}` tells what there is; a version that production was "
        "rolled back from must be named.",
    )
