"""Published rules, each as its own program has it."""
