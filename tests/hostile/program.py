"""A program that speaks the JSON-lines protocol correctly until a text names an attack; one function for each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

Act = Callable[[int, list[int]], None]
"""An attack, called with the number of the request and the correct ids."""
ATTACKS: dict[str, Act] = {}
LONG = 1 << 20
SURPLUS = ("in-advance", "many-lines")
"""Attacks whose surplus replies answer the next case, so that this case may report them."""


def attack(function: Act) -> Act:
    ATTACKS[function.__name__.replace("_", "-")] = function
    return function


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def reply(seq: Any, **rest: Any) -> None:
    write(json.dumps({"seq": seq, **rest}).encode() + b"\n")


def raw(result: str) -> Act:
    return lambda seq, right: write(b'{"seq": %d, "result": %s}\n' % (seq, result.encode()))


def spelled(spell: Callable[[int], object]) -> Act:
    return lambda seq, right: reply(seq, result=[spell(index) for index in right])


SPELLED: dict[str, Callable[[int], object]] = {"floats": float, "strings": str, "nested-ids": lambda index: [index]}
ATTACKS.update({name: spelled(spell) for name, spell in SPELLED.items()})
RAW = {
    "not-a-number": "[NaN]",
    "infinite": "[1e999]",
    "booleans": "[true]",
    "nothing": "null",
    "object": '{"97": 0}',
    "digits": "[" + "9" * 100_000 + "]",
    "beyond-64-bits": f"[{2**64}]",
    "beyond-32-bits": f"[{2**40}]",
    "deep": "[" * 500_000,
    "empty": "",
    "twice-a-key": '[1], "result": [2]',
    "text": '"\\u001b[2J</script>\\ud800\\u0000"',
}
ATTACKS.update({name: raw(result) for name, result in RAW.items()})


@attack
def next_number(seq: int, right: list[int]) -> None:
    reply(seq + 1, result=right)


@attack
def last_number(seq: int, right: list[int]) -> None:
    reply(seq - 1, result=right)


@attack
def no_number(seq: int, right: list[int]) -> None:
    write(json.dumps({"result": right}).encode() + b"\n")


@attack
def number_as_text(seq: int, right: list[int]) -> None:
    reply(str(seq), result=right)


@attack
def number_as_float(seq: int, right: list[int]) -> None:
    reply(float(seq), result=right)


@attack
def in_advance(seq: int, right: list[int]) -> None:
    reply(seq, result=[1])
    for number in range(seq + 1, seq + 100):
        reply(number, result=[1])


@attack
def many_lines(seq: int, right: list[int]) -> None:
    reply(seq, result=[1])
    while True:
        write(b"{}\n" * LONG)


@attack
def many_gigantic_lines(seq: int, right: list[int]) -> None:
    while True:
        reply(seq, result=[1] * 10_000_000)


@attack
def endless_line(seq: int, right: list[int]) -> None:
    while True:
        write(b"x" * LONG)


@attack
def long_line(seq: int, right: list[int]) -> None:
    write(b'{"seq": %d, "result": [' % seq)
    for _ in range(1024):
        write(b"1," * (LONG // 2))
    write(b"1]}\n")


@attack
def half_a_line(seq: int, right: list[int]) -> None:
    write(b'{"seq": %d, "res' % seq)
    time.sleep(1000)


@attack
def drop_by_drop(seq: int, right: list[int]) -> None:
    for byte in b'{"seq": %d, "result": [1' % seq + b" " * 10_000:
        write(bytes([byte]))
        time.sleep(0.01)


@attack
def silence(seq: int, right: list[int]) -> None:
    time.sleep(1000)


@attack
def binary(seq: int, right: list[int]) -> None:
    write(bytes(range(256)) * 100 + b"\n")


@attack
def blank_lines(seq: int, right: list[int]) -> None:
    write(b"\n" * 1000)


@attack
def not_utf8(seq: int, right: list[int]) -> None:
    write(b'{"seq": %d, "result": ["\xff\xfe"]}\n' % seq)


@attack
def an_array(seq: int, right: list[int]) -> None:
    write(b"[1]\n")


@attack
def neither(seq: int, right: list[int]) -> None:
    reply(seq)


@attack
def error_as_text(seq: int, right: list[int]) -> None:
    reply(seq, error="no")


@attack
def hostile_error(seq: int, right: list[int]) -> None:
    reported = "\x1b[2J</script>\ud800\n\x00"
    reply(seq, error={"type": reported, "message": reported * 100_000, "traceback": reported * 100_000})


@attack
def objects(seq: int, right: list[int]) -> None:
    write(b'{"seq": %d, "result": [%s[]]}\n' % (seq, b"[]," * 10_000_000))


@attack
def flood_of_errors(seq: int, right: list[int]) -> None:
    while True:
        os.write(2, b"\x1b[2J\xff\x00" * LONG)


@attack
def output_closed(seq: int, right: list[int]) -> None:
    os.close(1)
    time.sleep(1000)


@attack
def input_closed(seq: int, right: list[int]) -> None:
    os.close(0)
    reply(seq, result=[1])
    time.sleep(1000)


@attack
def ends_well(seq: int, right: list[int]) -> None:
    os._exit(0)


@attack
def ends_in_the_middle(seq: int, right: list[int]) -> None:
    write(b'{"seq": %d, "res' % seq)
    os._exit(0)


@attack
def stopped(seq: int, right: list[int]) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


@attack
def deaf(seq: int, right: list[int]) -> None:
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass


@attack
def children_hold_the_pipes(seq: int, right: list[int]) -> None:
    subprocess.Popen(["sh", "-c", "sleep 1000 & sleep 1000"], start_new_session=True)
    os._exit(0)


@attack
def kills_its_parent(seq: int, right: list[int]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    reply(seq, result=[1])


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        seq, op, text = request["seq"], request["op"], request.get("text")
        if op == "start":
            reply(seq, result={"protocol": 1, "name": "hostile", "capabilities": ["encode"]})
        elif op == "load":
            reply(seq, result={"model": 1})
        elif isinstance(text, str) and text.strip() in ATTACKS:
            ATTACKS[text.strip()](seq, [*text.encode()])
        else:
            reply(seq, result=[*str(text).encode()] if text != "ab" else [256])


if __name__ == "__main__":
    main()
