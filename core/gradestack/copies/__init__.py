"""Copies of inputs that readers can open.

Packed files unpacked, standard input and remote files fetched.
"""
