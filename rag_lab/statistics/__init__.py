"""One method a file: intervals, tests in families, margins, noise, and what a comparison allows one to say.

Of its rooms, `effects` has the contrasts of a design, `planning` what a number of questions could show, `pareto` the
fronts of quality against costs, `routing` whether a class should decide. Numbers in, numbers and sentences out. Imports
`errors` and `_kit`; `routing` `records` and `config`, too.
"""
