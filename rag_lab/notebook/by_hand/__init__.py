"""What a person does in a notebook that no metric does: says which answer is better, and where an answer stands.

Imports what stands above `notebook`. The browser holds no state: it shows the HTML that it is given, and says what was
clicked.
"""
