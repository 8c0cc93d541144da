"""A stand-in for TensorFlow Serving: the same protocol, for machines that have no such server.

Facts are those of TensorFlow Serving 2.20: paths, bodies, numbers, status codes, error texts.
"""
