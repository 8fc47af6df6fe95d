"""Layers, encoders and decoders: small stateless modules built from plain numbers.

Eqs. 3 and 8 are in ``operators``, 6 and 7 in ``encoder``, 9 and 10 in ``one_shot``.
"""
