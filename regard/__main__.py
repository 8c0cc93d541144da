"""``python -m regard``: the command ``regard``."""

from regard.pipeline.cli.__main__ import main

if __name__ == "__main__":
    main()
