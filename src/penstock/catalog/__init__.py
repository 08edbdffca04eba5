"""Everything that users meet by name: reasons, events, metrics, annotations, variables.

Each subject is declared once, as data, with its meaning. The code takes the names from here, and
the pages in docs/reference are generated from it.
"""
