"""Copies of inputs that readers can open: packed files unpacked, standard input and remote files fetched."""
