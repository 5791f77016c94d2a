"""The BFCL family: questions, possible answers, results and scores of the leaderboard, joined by
id.
"""

from gradestack import Component, hookimpl

_TABLE = """
reader bfcl .reader:Bfcl BFCL results, joined with questions, possible answers and scores
grader bfcl_valid .grader:BfclValid The verdict BFCL recorded in its score files
aggregator bfcl_categories .aggregators:BfclCategories Accuracy by category, and the mean of the
    categories
panel categories .panels:categories Accuracy by category and model, with intervals
stack bfcl .reader:bfcl Recorded BFCL verdicts where there are score files, else BFCL's rules and F1
    over calls
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))
