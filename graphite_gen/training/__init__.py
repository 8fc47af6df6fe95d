"""Models, objectives, the training loop and checkpoints."""
