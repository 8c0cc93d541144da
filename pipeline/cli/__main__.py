"""The entry point of the command ``regard``, also ``python -m regard.pipeline.cli``."""

import sys


def main() -> None:
    """Run the command line, or name the missing extra where only the layers are installed."""
    try:
        from regard.pipeline.cli.app import main as run
    except ModuleNotFoundError as error:
        if (error.name or "regard").startswith("regard"):
            raise
        print(
            f"The command needs the package {error.name!r}. Install the packages of the pipeline: "
            'pip install "regard[pipeline]"',
            file=sys.stderr,
        )
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
