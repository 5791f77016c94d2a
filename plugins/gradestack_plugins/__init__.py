"""Built-in plugins: one subpackage per metric family, plus readers, reporters, engines and statistics."""
