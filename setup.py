"""The distribution `regard`: the package `regard` and the command `regard`.

On glibc >= 2.39 `pip install ".[pipeline]"` resolves everything from the index. On an older one no
release of TFX resolves by itself: there `make install` takes requirements/lock.txt (see
CONTRIBUTING.md).
"""

from pathlib import Path

from setuptools import find_namespace_packages, setup

# The layers on their own: `from regard.models.attention import Attention`
REQUIRES = ["keras>=3.12,<4", "numpy>=1.26,<3", "annotated-types>=0.6"]

PIPELINE = [
    # The pipeline and the model
    "tfx>=1.21,<1.22",
    "apache-beam>=2.70,<3",
    "tensorflow>=2.21,<2.22",
    "tensorflow-text>=2.21.1,<2.22",  # 2.21.0 cannot be imported (tensorflow/text#1541)
    "tensorboard>=2.19,<3",
    "sentencepiece>=0.2,<0.3",
    "sacrebleu>=2.5,<3",
    "rouge-score>=0.1.2,<0.2",
    "regex>=2024.11",
    "scipy>=1.13,<2",
    "ftfy>=6.3,<7",
    "charset-normalizer>=3.3,<4",
    "rensa>=0.5,<0.6",  # before 1.0: each minor release may change what it hashes
    "pyarrow>=16,<19",
    "psutil>=5.9,<8",
    "packaging>=24",  # the doctor compares versions
    # The command, its configuration and its pictures
    "pydantic>=2.10,<3",
    "typer>=0.19",
    "rich>=13.9",
    "ruamel.yaml>=0.18,<0.20",
    "pyyaml>=6,<7",  # Kubeflow Pipelines reads YAML 1.1
    "pooch>=1.8,<2",
    "requests>=2.32,<3",
    "fsspec>=2025.2",
    "jinja2>=3.1,<4",
    "matplotlib>=3.9,<4",
    "tzlocal>=5,<6",
    # Serving: TensorFlow Serving's messages, the server that stands in for it, the client
    "tensorflow-serving-api>=2.19,<3",
    "grpcio>=1.66,<2",
    "grpcio-health-checking>=1.62,<1.81",  # later ones want another protobuf than TensorFlow
    "starlette>=0.45",
    "uvicorn>=0.34,<1",
    "google-crc32c>=1.5,<2",
    "httpx>=0.27,<1",
    "orjson>=3.10,<4",
    # Generated data: locales, and numbers spelled out
    "babel>=2.16,<3",
    "num2words>=0.5.13",
]

# Optional features
FEATURES = {
    # training.backend: jax on a CPU, and regard serve --engine jax; for Python 3.11 or newer
    "jax": ["jax>=0.7.2,<0.12; python_version >= '3.11'"],
    "kubeflow": ["kfp>=2.14,<3", "kfp-pipeline-spec>=2.14,<3", "kfp-server-api>=2.14,<3"],
    # Data and registries in object storage
    "s3": ["s3fs>=2025.2"],
    # regard export
    "ctranslate2": ["ctranslate2>=4.6,<5"],
    # tracking.mlflow
    "mlflow": ["mlflow-skinny>=3.17,<4"],
    # data.checks.language
    "language": ["py3langid>=0.4,<0.5"],
}
ALL_FEATURES = [line for lines in FEATURES.values() for line in lines]

EXTRAS = {
    "pipeline": PIPELINE,
    **FEATURES,
    # make extras
    "extras": ALL_FEATURES,
    # On NVIDIA GPUs: TensorFlow with CUDA 12, JAX with CUDA 13
    "gpu": ["tensorflow[and-cuda]>=2.21,<2.22"],
    "jax-cuda": ["jax[cuda13]>=0.7.2,<0.12; python_version >= '3.11'"],
    "gcs": ["gcsfs>=2025.2"],
    # make docs, with Python 3.11 or newer
    "docs": ["sphinx>=9,<10", "myst-parser>=5,<6", "furo>=2025.12", "codespell>=2.4,<3"],
    # Systems that benchmarks/ compares with
    "bench": ["torch>=2.6"],
    # make test, make lint
    "dev": [
        *ALL_FEATURES,
        "hypothesis>=6.100",
        "jsonschema>=4.18",
        "flask-cors>=5",
        "kubernetes-validate>=1.31",
        "moto[s3]>=5.1",
        "mypy>=1.15",
        "nbformat>=5.10",  # of TFX's InteractiveContext; Jupyter has it
        "pytest>=8.3",
        "pytest-xdist>=3.8",
        "ruff>=0.11",
        "setuptools>=75",
        "types-PyYAML",
        "websockets>=13",
        "wheel",
    ],
}

if __name__ == "__main__":
    setup(
        name="regard",
        version="0.1.0",
        description="Attention models from files to production, on TFX and Keras",
        long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
        long_description_content_type="text/markdown",
        license="Apache-2.0",
        license_files=["LICENSE"],
        packages=find_namespace_packages(include=["regard*"], exclude=["*__pycache__*"]),
        package_data={
            "": [
                *("*.yaml", "*.json", "*.tsv", "*.html", "*.jinja", "*.css", "*.js", "*.svg"),
                *("templates/*", "page/*", "deploy/*/*"),
            ]
        },
        python_requires=">=3.10,<3.14",
        install_requires=REQUIRES,
        extras_require=EXTRAS,
        entry_points={"console_scripts": ["regard = regard.pipeline.cli.__main__:main"]},
        classifiers=[
            "Development Status :: 4 - Beta",
            "Environment :: Console",
            "Intended Audience :: Developers",
            "Operating System :: POSIX :: Linux",
            "Programming Language :: Python :: 3.10",
            "Programming Language :: Python :: 3.11",
            "Programming Language :: Python :: 3.12",
            "Programming Language :: Python :: 3.13",
            "Topic :: Scientific/Engineering :: Artificial Intelligence",
        ],
    )
