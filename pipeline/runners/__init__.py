"""The ways a pipeline is run: the worker process, its runners, and what watches over them."""
