"""Does routing pay: rules by class, learned on some questions and tried on others, and the ceiling of any router.

Imports the ground of `statistics`, and `config` for the rules that a configuration can hold.
"""
