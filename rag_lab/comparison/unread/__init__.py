"""What models never read under each variant, and what that makes of a comparison.

Imports the tables of a run and what runs record; the report shows it beside the variant.
"""
