"""The process that trains on JAX: ``python -m regard.components.trainer.jax_process``.

The Trainer starts it, see ``jax_training``, or ``regard worker``; it runs ``jax_job``. Nothing in
it imports TensorFlow: Keras and TensorBoard would use it where it is installed, as a second runtime
with its own memory.
"""

import sys


def main() -> None:
    """Train the job that the arguments name, see ``job_process.main``."""
    sys.modules["tensorflow"] = None  # type: ignore[assignment]  # an import raises ImportError
    from regard.components.trainer import job_process
    from regard.components.trainer.jax_job import train_job

    job_process.exit_process(job_process.main(sys.argv[1:], train_job))


if __name__ == "__main__":
    main()
