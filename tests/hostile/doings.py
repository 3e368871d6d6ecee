"""Attacks besides the answer: floods, exits, hangs, and changes of the process."""

from __future__ import annotations

import builtins
import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any, NoReturn

from . import hangs
from .attack import Attack

kept: list[Any] = []


class FloodOut(Attack):
    outcome = "passed"

    def act(self) -> None:
        for _ in range(20):
            os.write(1, b"x" * (1 << 20))


class FloodError(Attack):
    outcome = "passed"

    def act(self) -> None:
        for _ in range(20):
            os.write(2, b"\xff\x00\n" * (1 << 18))


class EndlessFlood(Attack):
    in_process = False  # it fills the disk until its time is up

    def act(self) -> None:
        while True:
            os.write(1, b"\x1b[2J" * (1 << 18))


class EndlessPrints(Attack):
    in_process = False

    def act(self) -> None:
        while True:
            print("\x1b[31m" + "p" * 1000)


class WriteAndFail(Attack):
    def act(self) -> None:
        print("\x1b[2J\x1b]0;owned\x07 </script> \u202e")
        os.write(1, b"\x1b[31mraw\xff\x00")
        raise ValueError("\x1b[31m</script>\n\x00\u202e|")


class Exit(Attack):
    def act(self) -> None:
        sys.exit(0)


class Base(Attack):
    def act(self) -> None:
        raise BaseException("base")


class Interrupt(Attack):
    in_process = False

    def act(self) -> None:
        raise KeyboardInterrupt


class Closing(Attack):
    def act(self) -> None:
        raise GeneratorExit


class NoMemory(Attack):
    def act(self) -> None:
        raise MemoryError


class Recursion(Attack):
    def act(self) -> None:
        self.act()


class StopIt(Attack):
    def act(self) -> None:
        raise StopIteration


class OddError(Attack):
    def act(self) -> None:
        def fail(self: object) -> NoReturn:
            raise SystemExit

        raise type("Odd", (Exception,), {"__str__": fail, "__repr__": fail, "__traceback__": property(fail)})


class HostileKindOfError(Attack):
    def act(self) -> None:
        def fail(*_: object) -> NoReturn:
            raise SystemExit

        meta = type("Meta", (type,), {"__getattribute__": fail, "__instancecheck__": fail, "__eq__": fail})
        raise meta("Odd", (Exception,), {})


class GiganticError(Attack):
    def act(self) -> None:
        raise ValueError("x" * (200 << 20))


class EndlessError(Attack):
    def act(self) -> None:
        def spin(self: object) -> NoReturn:
            while True:
                pass

        raise type("Endless", (Exception,), {"__str__": spin})


class ManyLines(Attack):
    def act(self) -> None:
        raise ValueError("line\n" * 100_000)


class Chain(Attack):
    def act(self) -> None:
        error = first = ValueError("chain")
        for _ in range(10_000):
            error.__cause__ = ValueError("chain")
            error = error.__cause__
        error.__cause__ = first
        raise first


class Group(Attack):
    def act(self) -> None:
        group = getattr(builtins, "BaseExceptionGroup", None)  # since Python 3.11
        raise group("group", [KeyboardInterrupt(), SystemExit(0)]) if group else BaseException("group")


class InterruptByHand(Attack):
    in_process = False

    def act(self) -> None:
        import _thread

        threading.Timer(0.05, _thread.interrupt_main).start()
        time.sleep(0.5)


class Spin(Attack):
    def act(self) -> None:
        hangs.spin()


class Swallow(Attack):
    in_process = False

    def act(self) -> None:
        hangs.swallow_in_a_call()


class Deaf(Attack):
    in_process = False

    def act(self) -> None:
        hangs.stop_the_timer()


class Quit(Attack):
    in_process = False

    def act(self) -> None:
        os._exit(0)


class Kill(Attack):
    in_process = False

    def act(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class NativeHang(Attack):
    in_process = False

    def act(self) -> None:
        sum(itertools.repeat(0))


class AlarmBlocked(Attack):
    in_process = False

    def act(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
        while True:
            pass


class Handlers(Attack):
    outcome = "passed"
    in_process = False

    def act(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, lambda *_: os._exit(0))


class Folder(Attack):
    def act(self) -> None:
        os.chdir("/")


class DescriptorsClosed(Attack):
    outcome = "passed"
    in_process = False

    def act(self) -> None:
        for number in (0, 1, 2):
            os.close(number)


class Thread(Attack):
    outcome = "passed"

    def act(self) -> None:
        threading.Thread(target=time.sleep, args=(1000,), name="left behind").start()


class Child(Attack):
    outcome = "passed"
    in_process = False

    def act(self) -> None:
        kept.append(subprocess.Popen(["sleep", "1000"]))


class DetachedChild(Attack):
    outcome = "passed"
    in_process = False

    def act(self) -> None:
        script = "trap '' TERM HUP INT; sleep 1000 & sleep 1000"
        kept.append(subprocess.Popen(["sh", "-c", script], start_new_session=True))


class Daemon(Attack):
    outcome = "passed"
    in_process = False

    def act(self) -> None:
        if (child := os.fork()) == 0:
            os.setsid()
            if os.fork() == 0:
                os.execvp("sleep", ["sleep", "1000"])
            os._exit(0)
        os.waitpid(child, 0)


class Fork(Attack):
    outcome = "passed"
    in_process = False

    def act(self) -> None:
        if (child := os.fork()) == 0:
            time.sleep(1000)
            os._exit(0)
        kept.append(child)


class ForkAnswers(Attack):
    outcome = "passed"
    in_process = False

    def act(self) -> None:
        if os.fork() == 0:
            with contextlib.suppress(BaseException):
                sys.exit(0)
            os._exit(0)


class Locale(Attack):
    def act(self) -> None:
        import locale

        now = locale.setlocale(locale.LC_CTYPE)
        locale.setlocale(locale.LC_CTYPE, "C" if now != "C" else "C.UTF-8")


class Terminate(Attack):
    in_process = False

    def act(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(1)
