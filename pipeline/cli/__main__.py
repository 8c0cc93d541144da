"""The entry point of the command ``regard``, also ``python -m regard.pipeline.cli``."""

import sys

try:
    from regard.pipeline.cli.app import main
except ModuleNotFoundError as error:  # only the layers are installed
    if (error.name or "regard").startswith("regard"):
        raise
    print(
        f"The command needs the package {error.name!r}. Install the packages of the pipeline: "
        'pip install "regard[pipeline]"',
        file=sys.stderr,
    )
    sys.exit(2)

if __name__ == "__main__":
    main()
