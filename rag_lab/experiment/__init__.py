"""From an experiment file to a plan: factors, designs, checks before anything runs, and the manifest.

Imports `comparison`, `report` and what stands above them. Of its rooms, `race` draws the questions of a race,
`forecast` says what a plan will cost and could show, and `run` runs it; the last two are not imported from here.
"""
