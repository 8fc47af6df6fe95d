"""Layers, encoders and decoders: eqs. 3 and 8 in ``operators``, 6 and 7 in ``encoder``, 9 and 10 in ``one_shot``."""
