"""Pipelines on Kubeflow Pipelines: compiled, checked, started, scheduled, and run in containers."""
