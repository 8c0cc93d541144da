"""The building blocks that are not attention: embeddings, positions, cells, blocks, dropouts."""
