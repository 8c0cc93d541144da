"""Runs a pipeline again and again on this machine: when to look, and what is reason enough."""
