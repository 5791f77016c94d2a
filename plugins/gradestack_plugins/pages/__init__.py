"""Whatever shows a run: pages, Markdown, the terminal, a server, and the blocks of which plugins make panels."""
