"""One large network: link prediction, node classification, embeddings and generation, in less than O(n²) memory."""
