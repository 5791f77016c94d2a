"""Whatever shows a run.

Pages, Markdown, the terminal, a server, and the blocks of which plugins make panels.
"""
