"""The building blocks that are not attention: embeddings and recurrent cells."""
