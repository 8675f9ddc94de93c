"""A working folder of somebody else: its files have the names of libraries, and note that they were imported."""

NAMES = ("json", "jsonschema", "only_here")


def set_traps(folder, monkeypatch):
    """Make `folder` the working folder; the file that is returned exists once anything was imported from there."""
    folder.mkdir(exist_ok=True)
    sprung = folder / "sprung.txt"
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"open({str(sprung)!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(folder)
    return sprung
