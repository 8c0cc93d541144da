"""Regard: attention models as a TFX pipeline, from data to TensorFlow Serving.

The subpackages are ``pipeline``, ``components``, ``models``, ``serving`` and ``core``. In the
repository they are folders at the top level, and this folder links to them.
"""
