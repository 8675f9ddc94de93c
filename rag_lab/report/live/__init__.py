"""The report of a run in a browser while its sweep runs: what is served, and the server.

Reads run folders and writes nothing; `page` makes what is served, and is what this room imports beside `runs`.
"""
