"""Built-in plugins.

One subpackage per metric family, plus readers, reporters, engines and statistics.
"""
