"""One method a file: intervals, tests in families, margins, noise, and what a comparison allows one to say.

`effects` has the contrasts of a design, `non_inferiority` what may be left out, `routing` whether a class should
decide. Numbers in, numbers and sentences out. Imports `errors` and `_kit`; `routing` `records` and `config`, too.
"""
