"""One large graph: link prediction, node classification and embeddings, without anything of size n²."""
