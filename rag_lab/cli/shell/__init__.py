"""What a terminal adds to commands: help in groups, completion in bash, what to type next.

Imports no command.
"""
