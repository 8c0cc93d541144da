# The image for pipeline nodes on a cluster, for Beam workers and for the command regard.
#
#   docker build --tag regard:0.1.0 .
#   docker build --tag regard:0.1.0-cuda --build-arg ACCELERATOR=cuda .
#   docker build --tag regard:0.1.0-jax-cuda --build-arg ACCELERATOR=jax-cuda .
#   docker run --rm regard:0.1.0 regard doctor
#
# requirements/lock.txt is for Python 3.11 on Debian 12; every package is verified by its hash.

ARG PYTHON=3.11
ARG DEBIAN=bookworm
ARG BEAM=2.77.0

FROM apache/beam_python${PYTHON}_sdk:${BEAM} AS beam

FROM python:${PYTHON}-slim-${DEBIAN} AS build
# cpu; cuda: TensorFlow with CUDA; jax-cuda: JAX with CUDA, for training.backend: jax. The driver comes
# from the host.
ARG ACCELERATOR=cpu
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# pyfarmhash has no wheel. The version of g++ does not matter, because the stage is discarded.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/regard
# Packages first: this layer is cached until the lock file changes.
COPY requirements ./requirements
COPY setup.py README.md LICENSE ./
COPY regard ./regard
COPY pipeline/doctor/machine.py ./pipeline/doctor/
COPY core/processor.py ./core/
RUN python requirements/install.py --way lock --accelerator "$ACCELERATOR" .venv \
    && python requirements/install.py --way lock --add extras .venv
# Then Regard itself, which takes seconds.
COPY components ./components
COPY models ./models
COPY pipeline ./pipeline
COPY serving ./serving
COPY core ./core
COPY configs ./configs
RUN python requirements/install.py --way lock .venv \
    && .venv/bin/pip uninstall --quiet --yes uv \
    && rm .venv.log

FROM python:${PYTHON}-slim-${DEBIAN}
LABEL org.opencontainers.image.title="regard" \
    org.opencontainers.image.licenses="Apache-2.0"
# The launcher of Kubeflow Pipelines copies artifacts to and from /gcs, /minio and /s3 as the user
# of the image. A volume is mounted at /regard.
RUN useradd --create-home --uid 1000 regard \
    && install --directory --owner=regard --group=regard /gcs /minio /s3 /regard
COPY --from=beam /opt/apache/beam /opt/apache/beam
COPY --from=build /opt/regard /opt/regard
# By default, a Beam worker would create another environment without these packages, and Matplotlib
# would write to the home folder, which may be read-only.
ENV PATH=/opt/regard/.venv/bin:$PATH \
    REGARD_HOME=/regard \
    MPLCONFIGDIR=/tmp \
    PYTHONUNBUFFERED=1 \
    TF_FORCE_GPU_ALLOW_GROWTH=true \
    XLA_PYTHON_CLIENT_PREALLOCATE=false \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1
USER 1000:1000
WORKDIR /home/regard
# Beam starts a worker with options only; anything else is a command. `boot` writes a file to the
# working folder, which may be read-only.
ENTRYPOINT ["/bin/sh", "-c", "case $0 in --*) cd /tmp && exec /opt/apache/beam/boot \"$0\" \"$@\" ;; *) exec \"$0\" \"$@\" ;; esac"]
CMD ["regard", "--help"]
