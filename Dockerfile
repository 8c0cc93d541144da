# One image: for every node of a pipeline on a cluster, for Beam's workers, for the command regard.
#
#   docker build --tag regard:0.1.0 .
#   docker build --tag regard:0.1.0-cuda --build-arg ACCELERATOR=cuda .
#   docker run --rm regard:0.1.0 regard doctor
#
# Python 3.11 on Debian 12 is what requirements/lock.txt is for: every file comes by its hash.

ARG PYTHON=3.11
ARG DEBIAN=bookworm
ARG BEAM=2.77.0

FROM apache/beam_python${PYTHON}_sdk:${BEAM} AS beam

FROM python:${PYTHON}-slim-${DEBIAN} AS build
# cpu, or cuda: the libraries of requirements/cuda.txt beside it. The driver is the host's.
ARG ACCELERATOR=cpu
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# For pyfarmhash, of which there is no wheel. Debian's own version: it goes with the stage.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/regard
# The packages first: this layer stays until the lock changes.
COPY requirements ./requirements
COPY setup.py README.md LICENSE ./
COPY pipeline/__init__.py pipeline/machine.py ./pipeline/
RUN python requirements/install.py --way lock .venv
RUN case "$ACCELERATOR" in \
        cpu) ;; \
        cuda) .venv/bin/pip install --no-deps --require-hashes -r requirements/cuda.txt ;; \
        *) echo "ACCELERATOR is cpu or cuda, not $ACCELERATOR" >&2; exit 1 ;; \
    esac
# Then Regard itself: seconds, for the environment is there.
COPY components ./components
COPY models ./models
COPY pipeline ./pipeline
COPY serving ./serving
COPY configs ./configs
RUN python requirements/install.py --way lock .venv && rm .venv.log

FROM python:${PYTHON}-slim-${DEBIAN}
LABEL org.opencontainers.image.title="regard" \
    org.opencontainers.image.licenses="Apache-2.0"
# The launcher of Kubeflow Pipelines copies artifacts to and from /gcs, /minio and /s3, as the user
# of the image; /regard is where a volume is mounted.
RUN useradd --create-home --uid 1000 regard \
    && install --directory --owner=regard --group=regard /gcs /minio /s3 /regard
COPY --from=beam /opt/apache/beam /opt/apache/beam
COPY --from=build /opt/regard /opt/regard
# Beam's worker would otherwise make an environment of its own, without these packages.
ENV PATH=/opt/regard/.venv/bin:$PATH \
    REGARD_HOME=/regard \
    PYTHONUNBUFFERED=1 \
    TF_FORCE_GPU_ALLOW_GROWTH=true \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1
USER 1000:1000
WORKDIR /home/regard
# Beam starts a worker with nothing but options; everything else is a command.
ENTRYPOINT ["/bin/sh", "-c", "case $0 in --*) exec /opt/apache/beam/boot \"$0\" \"$@\" ;; *) exec \"$0\" \"$@\" ;; esac"]
CMD ["regard", "--help"]
