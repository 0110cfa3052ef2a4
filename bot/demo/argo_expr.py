"""The small expressions of Argo: `when` of a step, `depends` of a DAG task.

Comparison and logic only, without functions: https://argo-workflows.readthedocs.io/en/latest/enhanced-depends-logic/
and https://argo-workflows.readthedocs.io/en/latest/walk-through/conditionals/
"""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"[^"]*"|'[^']*')|(?P<op>&&|\|\||==|!=|>=|<=|=~|[()!<>])|(?P<word>[^\s()!=<>&|"']+))"""
)


class ExpressionError(ValueError):
    """An expression that cannot be read."""


def evaluate(text: str, resolve: Callable[[str], str | bool] = str) -> bool:
    """The truth of an expression; `resolve` gives a bare word its value.

    Raises ExpressionError.
    """
    tokens = _tokens(text)
    value, rest = _either(tokens, resolve)
    if rest:
        raise ExpressionError(f"unexpected {rest[0][1]!r} in {text!r}")
    return _truth(value)


Tokens = list[tuple[str, str]]
Value = str | bool


def _tokens(text: str) -> Tokens:
    found: Tokens = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(f"cannot read {text[at:]!r}")
        found.append((str(match.lastgroup), match.group(str(match.lastgroup))))
        at = match.end()
    return found


def _either(tokens: Tokens, resolve: Callable[[str], Value]) -> tuple[Value, Tokens]:
    value, tokens = _both(tokens, resolve)
    while tokens[:1] == [("op", "||")]:
        right, tokens = _both(tokens[1:], resolve)
        value = _truth(value) or _truth(right)
    return value, tokens


def _both(tokens: Tokens, resolve: Callable[[str], Value]) -> tuple[Value, Tokens]:
    value, tokens = _comparison(tokens, resolve)
    while tokens[:1] == [("op", "&&")]:
        right, tokens = _comparison(tokens[1:], resolve)
        value = _truth(value) and _truth(right)
    return value, tokens


def _comparison(tokens: Tokens, resolve: Callable[[str], Value]) -> tuple[Value, Tokens]:
    left, tokens = _operand(tokens, resolve)
    if tokens and tokens[0][0] == "op" and tokens[0][1] in _COMPARE:
        operator = tokens[0][1]
        right, tokens = _operand(tokens[1:], resolve)
        return _COMPARE[operator](str(left), str(right)), tokens
    return left, tokens


def _operand(tokens: Tokens, resolve: Callable[[str], Value]) -> tuple[Value, Tokens]:
    if not tokens:
        raise ExpressionError("the expression ends too early")
    (sort, text), rest = tokens[0], tokens[1:]
    if sort == "string":
        return text[1:-1], rest
    if sort == "word":
        return resolve(text), rest
    if text == "!":
        value, rest = _operand(rest, resolve)
        return not _truth(value), rest
    if text == "(":
        value, rest = _either(rest, resolve)
        if rest[:1] != [("op", ")")]:
            raise ExpressionError("a parenthesis is not closed")
        return value, rest[1:]
    raise ExpressionError(f"unexpected {text!r}")


def _ordered(compare: Callable[[float, float], bool]) -> Callable[[str, str], bool]:
    def test(left: str, right: str) -> bool:
        try:
            return compare(float(left), float(right))
        except ValueError as error:
            raise ExpressionError(f"cannot order {left!r} and {right!r}") from error

    return test


_COMPARE: dict[str, Callable[[str, str], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "=~": lambda left, right: re.search(right, left) is not None,
    ">": _ordered(lambda left, right: left > right),
    "<": _ordered(lambda left, right: left < right),
    ">=": _ordered(lambda left, right: left >= right),
    "<=": _ordered(lambda left, right: left <= right),
}


def _truth(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise ExpressionError(f"{value!r} is neither true nor false")
