"""What a JSON file may hold: it is checked once, where it is read, and readers need no check of
their own."""

import json
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
    create_model,
)

from .errors import InputError, in_one_line

Schema = type[BaseModel]


def _encodable(text: str) -> str:
    """The text; UnicodeEncodeError if it holds half of a surrogate pair, which no file of UTF-8
    can."""
    text.encode()
    return text


Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Text = Annotated[str, Field(strict=True), AfterValidator(_encodable)]
Truth = StrictBool
# what a value must be, by pydantic's name of what is wrong with it
_WANTED = {
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be an object"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    **dict.fromkeys(("int_type", "int_from_float", "multiple_of"), "must be a whole number"),
    "float_type": "must be a number",
    "finite_number": "must be finite",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
    "none_required": "must be left out",
    "literal_error": "must be {expected}",
    "greater_than": "must be above {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be below {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "too_short": "must hold {min_length} or more",
    "too_long": "must hold {max_length} or fewer",
}


def having(required: dict[str, Any], optional: dict[str, Any] | None = None) -> Schema:
    """A JSON object with values of these types; whatever else it holds is free.

    Args:
        required: the type of the value of each key that must be there.
        optional: of each that may be there.
    """
    fields: dict[str, Any] = {key: (kind, ...) for key, kind in required.items()}
    fields |= {key: (kind, None) for key, kind in (optional or {}).items()}
    free = ConfigDict(extra="allow", protected_namespaces=())
    return create_model("object", __config__=free, **fields)


def check(content: object, schema: Schema, where: str, remedy: str) -> None:
    """Refuse what does not hold what a schema says.

    Args:
        where: what holds it, for the message.
        remedy: what to do about it; it ends the message.

    Raises:
        InputError: a value is missing or of another type; it names the first.
    """
    try:
        schema.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = _path(content, first["loc"])
        if first["type"] == "missing":
            missing = ".".join([*key, str(first["loc"][-1])])
            raise InputError(f"{where} does not say {missing}; {remedy}.") from error
        held = in_one_line(json.dumps(first["input"], ensure_ascii=False, default=str))
        wanted = _WANTED.get(first["type"], "does not belong there").format(**first.get("ctx", {}))
        name = ".".join(key) or "the content"
        raise InputError(f"{name} in {where} is {held}, and it {wanted}; {remedy}.") from error


def _path(content: Any, location: tuple[str | int, ...]) -> list[str]:
    """The keys of a place in the content, without pydantic's names of the types that it tried."""
    path = []
    for part in location:
        try:
            content = content[part]
        except (KeyError, IndexError, TypeError):
            continue
        path.append(str(part))
    return path
