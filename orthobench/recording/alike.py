"""Reading of many records that are alike: what two have in common is compared as text, and only the rest is parsed.

Records of one sweep differ in few values. The first two with the same keys tell which, and so make a `Form`: the text
of the file around those values. A file that has this text is read by it, and its digest is computed as always, over
all of its values. Any other file, also a damaged one, is left to `read_sealed`, which says what is wrong with it.
"""

import hashlib
import json
import math
import re
from json.encoder import c_make_encoder, encode_basestring_ascii  # pyright: ignore
from typing import Any

from orthobench.recording.rows import Columns, Flat, RecordRow
from orthobench.recording.shape import LISTS, have_lists

CURVE, DIGEST = "curve", "sha256"
MOST = 64  # forms that are tried


class Alike:
    """The forms of the records that have been read."""

    def __init__(self) -> None:
        self._forms: list[Form] = []
        self._last: dict[tuple[str, ...], tuple[Flat, frozenset[str]]] = {}
        self._layouts: dict[tuple[str, ...], Columns] = {}

    def read(self, text: str) -> RecordRow | None:
        """The row of a record by the text of its file; None where no form fits, or the digest is another."""
        for place, form in enumerate(self._forms):
            values = form.read(text)
            if values is not None:
                if place:
                    self._forms.insert(0, self._forms.pop(place))
                return form.layout, values
        return None

    def learn(self, text: str, record: dict[str, Any], flat: Flat) -> RecordRow:
        """The row of a record that no form fits, and one for those like it.

        Args:
            text: of its file.
            record: as it was read and judged by `read_sealed`.
            flat: its values by column.
        """
        names = tuple(flat)
        if names not in self._last:  # a form is of no use to a record that is like no other
            self._last[names], self._layouts[names] = (flat, frozenset()), Columns(names, {}, names)
        else:
            before, known = self._last[names]
            varying = known | {name for name, value in flat.items() if _differs(value, before[name])}
            self._last[names] = flat, varying
            form = next((form for form in self._forms if form.layout.names == names), None)
            others = [other for other in self._forms if other is not form]
            if form is None or varying != known:
                form = Form(record, flat, varying)
            if form.admit(text, flat):
                self._forms = [form, *others][:MOST]
        return self._layouts[names], tuple(flat.values())


class Form:
    """The text around the values in which some records differ.

    Args:
        record: one of them.
        flat: its values by column.
        varying: names of the columns in which others differ from it; lists, the curve and the digest always may.
    """

    def __init__(self, record: dict[str, Any], flat: Flat, varying: frozenset[str]) -> None:
        names: list[str] = []
        lists = {name for name, value in flat.items() if isinstance(value, list)}
        marked = _marked(record, "", {*varying, *lists, CURVE, DIGEST}, names)
        self._blocks = re.split(r'"\\u0000\d+"', json.dumps(marked, indent=2) + "\n")
        marked.pop(DIGEST, None)
        self._sealed = re.split(r'"\\u0000(\d+)"', json.dumps(marked, sort_keys=True))
        self._order = [int(place) for place in self._sealed[1::2]]
        self._whole = DIGEST in names and len(self._blocks) - 1 == len(names) == len({*names}) == len(self._order) + 1
        self._digest = names.index(DIGEST) if DIGEST in names else 0
        self._nested = {place: _Nested() for place, name in enumerate(names) if name in lists or name == CURVE}
        self._scans = [self._nested[place].read if place in self._nested else _scan for place in range(len(names))]
        self._kinds: dict[tuple[type, ...], tuple[list[Any], list[int]]] = {}
        self._lists = [(place, name) for place, name in enumerate(names) if name in LISTS]
        self._right: dict[str, Any] = {}  # the last lists whose parts were looked at
        self._columns = [place for place, name in enumerate(names) if name in flat]
        fixed = {name: value for name, value in flat.items() if name not in names}
        self.layout = Columns(tuple(flat), fixed, tuple(names[place] for place in self._columns))

    def admit(self, text: str, flat: Flat) -> bool:
        """Take the kinds of a record's values for right; False where the form does not fit its text."""
        values = self._values(text) if self._whole else None
        if values is None or flat != self.layout.fixed | dict(zip(self.layout.varying, self._row(values), strict=True)):
            return False
        kinds = tuple(map(type, values))
        decimal = [place for place, kind in enumerate(kinds) if kind is float]
        self._kinds[kinds] = [self._writer(place, kind) for place, kind in enumerate(kinds)], decimal
        return True

    def _writer(self, place: int, kind: type) -> Any:
        """The function that writes a value of a kind as JSON."""
        return self._nested[place].write if kind in (list, dict) and place in self._nested else _AS_JSON[kind]

    def read(self, text: str) -> tuple[Any, ...] | None:
        """The values of a record in the columns that vary; None where it is of another form, or its digest is."""
        values = self._values(text)
        if values is None:
            return None
        writers, decimal = self._kinds.get(tuple(map(type, values)), (None, ()))
        if writers is None or not math.isfinite(sum(map(values.__getitem__, decimal))):
            # a sum with a number that is not finite is not finite
            return None
        unknown = {name: values[place] for place, name in self._lists if values[place] is not self._right.get(name)}
        if not have_lists(unknown):
            return None
        self._right |= unknown
        try:
            texts = [write(value) for write, value in zip(writers, values, strict=True)]
        except RecursionError:
            return None
        sealed = self._sealed.copy()
        sealed[1::2] = map(texts.__getitem__, self._order)
        own = hashlib.sha256("".join(sealed).encode()).hexdigest()
        return self._row(values) if own == values[self._digest] else None

    def _row(self, values: list[Any]) -> tuple[Any, ...]:
        return tuple(map(values.__getitem__, self._columns))

    def _values(self, text: str) -> list[Any] | None:
        """Every marked value of a file; None where the text around them is another."""
        values, place = [], 0
        try:
            for block, scan in zip(self._blocks, self._scans, strict=False):  # the last block is looked at below
                if not text.startswith(block, place):
                    return None
                value, place = scan(text, place + len(block))
                values.append(value)
        except (StopIteration, ValueError, RecursionError):
            return None
        return values if text[place:] == self._blocks[-1] else None


class _Nested:
    """The last list or object at one place of a file: it is parsed and written again once the text is another.

    Rows of records that have the same share it.
    """

    def __init__(self) -> None:
        self._text, self._value, self._written = "", None, ""

    def read(self, text: str, place: int) -> tuple[Any, int]:
        """A value and the place behind it, as the scanner of JSON gives them."""
        if self._text and text.startswith(self._text, place):  # no longer value begins so, as it ends with a bracket
            return self._value, place + len(self._text)
        value, end = _scan(text, place)
        if isinstance(value, (list, dict)):
            self._text, self._value, self._written = text[place:end], value, ""
        return value, end

    def write(self, value: Any) -> str:
        """The value that was read last, as JSON."""
        self._written = self._written or _of_list(value)
        return self._written


def _marked(node: dict[str, Any], above: str, varying: set[str], names: list[str]) -> dict[str, Any]:
    """A record with a mark in place of each value that varies, whose names are added to `names`."""
    found: dict[str, Any] = {}
    for key, value in node.items():
        name = f"{above}{key}"
        if name in varying and (name == CURVE or not isinstance(value, dict)):
            found[key] = f"\0{len(names)}"
            names.append(name)
        else:
            found[key] = _marked(value, f"{name}.", varying, names) if isinstance(value, dict) else value
    return found


def _differs(value: Any, other: Any) -> bool:
    return type(value) is not type(other) or value != other


def _of_list(value: Any) -> str:
    return "".join(_parts(value, 0))


_scan: Any = json.JSONDecoder().scan_once  # pyright: ignore  (what raw_decode calls, in half the time)
_parts: Any = c_make_encoder(None, None, encode_basestring_ascii, None, ": ", ", ", True, False, True)  # made once
_AS_JSON: dict[type, Any] = {
    **{str: encode_basestring_ascii, int: repr, float: repr, list: _of_list, dict: _of_list},
    **{bool: {True: "true", False: "false"}.__getitem__, type(None): {None: "null"}.__getitem__},
}
