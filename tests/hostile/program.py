"""A program that speaks the JSON-lines protocol rightly until a text names an attack; one function for each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

Act = Callable[[int], None]
ATTACKS: dict[str, Act] = {}
LONG = 1 << 20
SURPLUS = ("in-advance", "many-lines")
"""Those whose surplus replies may be told of at the next case, which they answer."""


def attack(function: Act) -> Act:
    ATTACKS[function.__name__.replace("_", "-")] = function
    return function


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def reply(seq: Any, **rest: Any) -> None:
    write(json.dumps({"seq": seq, **rest}).encode() + b"\n")


def raw(result: str) -> Act:
    return lambda seq: write(b'{"seq": %d, "result": %s}\n' % (seq, result.encode()))


RAW = {
    "not-a-number": "[NaN]",
    "infinite": "[1e999]",
    "floats": "[1.0]",
    "strings": '["1"]',
    "booleans": "[true]",
    "nested-ids": "[[1]]",
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
def next_number(seq: int) -> None:
    reply(seq + 1, result=[1])


@attack
def last_number(seq: int) -> None:
    reply(seq - 1, result=[1])


@attack
def no_number(seq: int) -> None:
    write(b'{"result": [1]}\n')


@attack
def number_as_text(seq: int) -> None:
    reply(str(seq), result=[1])


@attack
def number_as_float(seq: int) -> None:
    reply(float(seq), result=[1])


@attack
def in_advance(seq: int) -> None:
    reply(seq, result=[1])
    for number in range(seq + 1, seq + 100):
        reply(number, result=[1])


@attack
def many_lines(seq: int) -> None:
    reply(seq, result=[1])
    while True:
        write(b"{}\n" * LONG)


@attack
def many_gigantic_lines(seq: int) -> None:
    while True:
        reply(seq, result=[1] * 10_000_000)


@attack
def endless_line(seq: int) -> None:
    while True:
        write(b"x" * LONG)


@attack
def long_line(seq: int) -> None:
    write(b'{"seq": %d, "result": [' % seq)
    for _ in range(1024):
        write(b"1," * (LONG // 2))
    write(b"1]}\n")


@attack
def half_a_line(seq: int) -> None:
    write(b'{"seq": %d, "res' % seq)
    time.sleep(1000)


@attack
def drop_by_drop(seq: int) -> None:
    for byte in b'{"seq": %d, "result": [1' % seq + b" " * 10_000:
        write(bytes([byte]))
        time.sleep(0.01)


@attack
def silence(seq: int) -> None:
    time.sleep(1000)


@attack
def binary(seq: int) -> None:
    write(bytes(range(256)) * 100 + b"\n")


@attack
def blank_lines(seq: int) -> None:
    write(b"\n" * 1000)


@attack
def not_utf8(seq: int) -> None:
    write(b'{"seq": %d, "result": ["\xff\xfe"]}\n' % seq)


@attack
def an_array(seq: int) -> None:
    write(b"[1]\n")


@attack
def neither(seq: int) -> None:
    reply(seq)


@attack
def error_as_text(seq: int) -> None:
    reply(seq, error="no")


@attack
def hostile_error(seq: int) -> None:
    told = "\x1b[2J</script>\ud800\n\x00"
    reply(seq, error={"type": told, "message": told * 100_000, "traceback": told * 100_000})


@attack
def objects(seq: int) -> None:
    write(b'{"seq": %d, "result": [%s[]]}\n' % (seq, b"[]," * 10_000_000))


@attack
def flood_of_errors(seq: int) -> None:
    while True:
        os.write(2, b"\x1b[2J\xff\x00" * LONG)


@attack
def output_closed(seq: int) -> None:
    os.close(1)
    time.sleep(1000)


@attack
def input_closed(seq: int) -> None:
    os.close(0)
    reply(seq, result=[1])
    time.sleep(1000)


@attack
def ends_well(seq: int) -> None:
    os._exit(0)


@attack
def ends_in_the_middle(seq: int) -> None:
    write(b'{"seq": %d, "res' % seq)
    os._exit(0)


@attack
def stopped(seq: int) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


@attack
def deaf(seq: int) -> None:
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass


@attack
def children_hold_the_pipes(seq: int) -> None:
    subprocess.Popen(["sh", "-c", "sleep 1000 & sleep 1000"], start_new_session=True)
    os._exit(0)


@attack
def kills_its_parent(seq: int) -> None:
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
            ATTACKS[text.strip()](seq)
        else:
            reply(seq, result=[*str(text).encode()] if text != "ab" else [256])


if __name__ == "__main__":
    main()
