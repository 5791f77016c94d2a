"""How sure figures are: intervals by leaving one task out, and the states they are computed from."""
