"""``python -m regard.pipeline.cli``."""

from regard.pipeline.cli.app import main

if __name__ == "__main__":
    main()
