"""The YAML's sections that define a model, as pydantic models: the parts that tasks share."""
