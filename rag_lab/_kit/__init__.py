"""What any program needs: sections of configuration, YAML, digests, whole files, wording, modules by name.

Nothing here knows what retrieval is. Imports only `errors` and `redaction`.
"""
