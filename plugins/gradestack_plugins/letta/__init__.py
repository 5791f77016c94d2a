"""letta-evals: its recorded results, its datasets, and its program."""

from gradestack import Component, hookimpl

_TABLE = """
reader letta .reader:Letta letta-evals output directories, and gradestack's own report directories
reader letta_dataset .dataset:LettaDataset letta-evals datasets: lines or CSV, input and
    ground_truth
panel results .panels:results The results in the words of letta's guide
program letta .program:LettaProgram letta-evals itself: its results, summary, gates
stack letta .recording:stack The recorded gate grades, with error bars
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))
