"""Hostile inputs for every reader: how they are made, what they must not do, and who watches over them."""
