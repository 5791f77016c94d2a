"""The run loop: samples in, grades and figures out.

Knows no directory, configuration or file format.
"""
