"""Folders that one run of the tests builds once, shared by the processes of pytest-xdist."""

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path


class SharedFolders:
    """Folders by name. The first process that needs one builds it, while the others wait.

    Args:
        root: The folder of the folders. All processes of one run use the same one.
    """

    def __init__(self, root: Path):
        self._root = root

    def get(self, name: str, build: Callable[[Path], object]) -> Path:
        """Return a folder, which nobody may change.

        Args:
            name: A file name that is unique for what is built.
            build: Creates the folder at the path that it receives.
        """
        folder = self._root / name
        self._root.mkdir(parents=True, exist_ok=True)
        with (self._root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file is closed
            if not folder.exists():
                unfinished = self._root / f"{name}.unfinished"
                shutil.rmtree(unfinished, ignore_errors=True)
                build(unfinished)
                unfinished.rename(folder)
        return folder

    def copy(self, name: str, build: Callable[[Path], object], path: Path) -> Path:
        """Write a copy of a folder, which the caller may change, to a path that is new or empty.

        Args:
            name: As for :meth:`get`.
            build: As for :meth:`get`.
            path: The path of the copy; its parents are created.

        Returns:
            The path.
        """
        # New files, as if they were written now: the age of a file can matter.
        folder = self.get(name, build)
        shutil.copytree(folder, path, copy_function=shutil.copyfile, dirs_exist_ok=True)
        return path


current: SharedFolders | None = None  # set by tests/conftest.py
