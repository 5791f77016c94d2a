"""What the files hold: trials, the gold conversation, a judge's verdicts."""
