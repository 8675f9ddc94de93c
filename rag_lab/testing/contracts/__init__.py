"""The contract of each kind of module, as a class to inherit: its `test_` methods are the rules.

May import every room but `cli`; nothing outside tests imports it. pytest runs it and is not needed to import it.
"""
