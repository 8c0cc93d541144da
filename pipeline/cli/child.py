"""Runs a command that ends with its parent: ``python -m regard.pipeline.cli.child run FILE``."""

from regard.core.processes import end_with_parent
from regard.pipeline.cli.app import main

if __name__ == "__main__":
    end_with_parent()
    main()
