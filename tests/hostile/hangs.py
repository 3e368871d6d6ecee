"""Code that never ends and evades time limits."""

from __future__ import annotations

import contextlib
import signal
import time


def spin() -> None:
    while True:
        pass


def swallow() -> None:
    while True:
        try:
            sum(range(100))
        except BaseException:
            continue


def swallow_in_a_call() -> None:
    def careful() -> None:
        with contextlib.suppress(BaseException):
            time.sleep(0.01)

    while True:
        careful()


def swallow_by_finally() -> None:
    while True:
        try:
            time.sleep(10)
        finally:
            continue  # noqa: B012


def turn_into_another() -> None:
    try:
        spin()
    except BaseException:
        raise ValueError("the adapter's own") from None


def end_late() -> None:
    try:
        spin()
    except BaseException:
        return


def swallow_by_name() -> None:
    def careful() -> None:
        while True:
            try:
                time.sleep(0.001)
            except BaseException as error:
                del error

    while True:
        with contextlib.suppress(BaseException):
            careful()


def swallow_in_loops() -> None:
    while True:
        try:
            while True:
                try:
                    while True:
                        try:
                            sum(range(100))
                        except BaseException:
                            continue
                except BaseException:
                    continue
        except BaseException:
            continue


def swallow_in_calls(depth: int = 5) -> None:
    while True:
        with contextlib.suppress(BaseException):
            swallow_in_calls(depth - 1) if depth else sum(range(100))


def swallow_in_handlers() -> None:
    while True:
        try:
            spin()
        except BaseException:
            try:
                spin()
            except BaseException:
                continue


def keep_what_is_caught() -> None:
    kept: list[BaseException] = []
    while True:
        try:
            sum(range(100))
        except BaseException as error:
            kept.append(error)


def stop_the_timer() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    spin()


def take_the_alarm() -> None:
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    spin()


def block_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    spin()


INTERRUPTED = [spin, turn_into_another, end_late]
"""Attacks that a time limit in the same process ends."""
