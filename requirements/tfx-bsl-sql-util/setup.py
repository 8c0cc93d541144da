"""One module, `tfx_bsl.arrow.sql_util`: TFX-BSL 1.21 dropped it, TFDV 1.16.1 imports it.

An installed distribution, not a patch at run time, so that Beam's worker processes have it too.
"""

from setuptools import setup

if __name__ == "__main__":
    setup(
        name="tfx-bsl-sql-util",
        version="1.21.0",
        description="tfx_bsl.arrow.sql_util for TFDV 1.16.1 with tfx-bsl 1.21",
        license="Apache-2.0",
        # No find_packages: the packages tfx_bsl and tfx_bsl.arrow belong to tfx-bsl.
        package_dir={"": "src"},
        py_modules=["tfx_bsl.arrow.sql_util"],
        python_requires=">=3.10,<3.14",
    )
