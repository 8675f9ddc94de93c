"""users.yaml: the people who ask, each with the permissions that he or she has. It stands beside attributes.yaml.

anna: [hr, management]
guest: []
"""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rag_lab._kit.config_file import complaint_and_value, key_of, read_yaml
from rag_lab.corpus.rules import rules_folder
from rag_lab.errors import ConfigError, DatasetError, unknown_name

USERS_FILE = "users.yaml"
_USERS: TypeAdapter[dict[str, list[str]]] = TypeAdapter(dict[str, list[str]])


def read_users(corpus_dir: Path) -> dict[str, tuple[str, ...]]:
    """Return the permissions of each person; nobody where there is no file."""
    path = rules_folder(corpus_dir) / USERS_FILE
    if not path.exists():
        return {}
    try:
        people = _USERS.validate_python(read_yaml(path), strict=True)
    except ConfigError as error:
        raise DatasetError(str(error)) from None
    except ValidationError as error:
        detail = error.errors()[0]
        raise DatasetError(
            f"{path}: {key_of(detail)} {complaint_and_value(detail)}; write a name with its permissions: anna: [hr]"
        ) from None
    if blank := [name for name, permissions in people.items() if not all(map(str.strip, (name, *permissions)))]:
        raise DatasetError(f"{path}: {blank[0]!r} has an empty name or permission; fill it in.")
    return {name: tuple(permissions) for name, permissions in people.items()}


def permissions_of(corpus_dir: Path, person: str) -> tuple[str, ...]:
    """Return the permissions of a person; raise a `ConfigError` where users.yaml does not name one so called."""
    people = read_users(corpus_dir)
    if person not in people:
        where = rules_folder(corpus_dir) / USERS_FILE
        found = unknown_name("person", person, people) if people else f"There is no {where}"
        raise ConfigError(f"{found}; {where.name} names who may see what, as: {person}: [hr]")
    return people[person]
