"""What follows from the tables, in sentences: the verdict, its caveats, conclusions, and which variant to use.

Imports `tables` and `comparison`.
"""

from pathlib import Path

from rag_lab._kit.config_file import read_shipped

SAYS: dict[str, str] = read_shipped(Path(__file__).with_name("sentences.yaml"))
