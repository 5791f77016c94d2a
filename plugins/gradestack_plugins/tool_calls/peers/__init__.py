"""Published rules, each as its own program has it: a file per program."""
