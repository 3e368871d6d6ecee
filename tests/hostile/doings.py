"""What is done beside the answer: floods, exits, hangs, and changes of the process."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from typing import Any, NoReturn

from . import hangs
from .attack import Attack

kept: list[Any] = []


class FloodOut(Attack):
    outcome = "pass"

    def act(self) -> None:
        for _ in range(20):
            os.write(1, b"x" * (1 << 20))


class FloodError(Attack):
    outcome = "pass"

    def act(self) -> None:
        for _ in range(20):
            os.write(2, b"\xff\x00\n" * (1 << 18))


class EndlessFlood(Attack):
    def act(self) -> None:
        while True:
            os.write(1, b"\x1b[2J" * (1 << 18))


class EndlessPrints(Attack):
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


class ExitWithText(Attack):
    def act(self) -> None:
        raise SystemExit("\x1b[31mbye")


class Base(Attack):
    def act(self) -> None:
        raise BaseException("base")


class Interrupt(Attack):
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
    outcome, isolated = "", "fail"

    def act(self) -> None:
        import _thread

        threading.Timer(0.05, _thread.interrupt_main).start()
        time.sleep(0.5)


class Spin(Attack):
    def act(self) -> None:
        hangs.spin()


class SwallowNested(Attack):
    def act(self) -> None:
        hangs.swallow_in_loops()


class SwallowInCalls(Attack):
    def act(self) -> None:
        hangs.swallow_in_calls()


class TimerStopped(Attack):
    def act(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        while True:
            pass


class AlarmIgnored(Attack):
    def act(self) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        while True:
            time.sleep(0.01)


class AlarmTaken(Attack):
    def act(self) -> None:
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.alarm(1)
        while True:
            pass


class AlarmBlocked(Attack):
    def act(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
        while True:
            pass


class AlarmOff(Attack):
    outcome = "pass"

    def act(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


class Blocked(Attack):
    outcome = "pass"

    def act(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM, signal.SIGINT, signal.SIGTERM})


class Handlers(Attack):
    outcome = "pass"

    def act(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, lambda *_: os._exit(0))


class EarlyAlarm(Attack):
    def act(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.2)
        with contextlib.suppress(BaseException):
            time.sleep(0.01)


class Folder(Attack):
    def act(self) -> None:
        os.chdir("/")


class Umask(Attack):
    outcome = "pass"

    def act(self) -> None:
        os.umask(0o777)


class RecursionLimit(Attack):
    outcome = "pass"

    def act(self) -> None:
        with contextlib.suppress(RecursionError):
            sys.setrecursionlimit(60)


class NoPath(Attack):
    outcome = "pass"

    def act(self) -> None:
        sys.path.clear()


class NoEnvironment(Attack):
    outcome = "pass"

    def act(self) -> None:
        os.environ.clear()


class NoFinders(Attack):
    outcome = "pass"

    def act(self) -> None:
        sys.meta_path.clear()


class NoModules(Attack):
    outcome = "pass"

    def act(self) -> None:
        for name in list(sys.modules):
            if name.startswith("json"):
                del sys.modules[name]


class Streams(Attack):
    outcome = "pass"

    def act(self) -> None:
        sys.stdout.close()
        sys.stdout = sys.stderr = sys.__stdout__ = None  # type: ignore[assignment,misc]


class DescriptorsClosed(Attack):
    outcome = "pass"

    def act(self) -> None:
        for number in (0, 1, 2):
            os.close(number)


class DescriptorsMoved(Attack):
    outcome = "pass"

    def act(self) -> None:
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)


class Random(Attack):
    outcome = "pass"

    def act(self) -> None:
        random.seed(0)


class Collector(Attack):
    outcome = "pass"

    def act(self) -> None:
        gc.disable()
        gc.set_threshold(1)
        gc.callbacks.append(lambda *_: 1 / 0)


class Tracing(Attack):
    def act(self) -> None:
        def trace(*_: Any) -> Any:
            raise ValueError("traced")

        sys.settrace(trace)
        threading.settrace(trace)


class Watching(Attack):
    outcome = "pass"

    def act(self) -> None:
        def trace(frame: Any, event: str, arg: Any) -> None:
            if "judging" in frame.f_code.co_filename:
                raise ValueError("traced")

        sys.settrace(trace)


class Profiling(Attack):
    outcome = "pass"

    def act(self) -> None:
        def profile(frame: Any, event: str, arg: Any) -> None:
            if event == "call" and "judging" in frame.f_code.co_filename:
                raise ValueError("profiled")

        sys.setprofile(profile)


class Warns(Attack):
    outcome = "pass"

    def act(self) -> None:
        warnings.simplefilter("error")
        warnings.showwarning = lambda *_: os._exit(0)  # type: ignore[assignment]


class Unraisable(Attack):
    outcome = "pass"

    def act(self) -> None:
        class Last:
            def __del__(self) -> None:
                raise ValueError("\x1b[2J</script>\x00")

        Last()
        gc.collect()


class FailingThread(Attack):
    outcome = "pass"

    def act(self) -> None:
        def fail() -> None:
            raise ValueError("\x1b[2J</script>\x00")

        thread = threading.Thread(target=fail, name="\x1b[31m")
        thread.start()
        thread.join()


class Thread(Attack):
    outcome = "pass"

    def act(self) -> None:
        threading.Thread(target=time.sleep, args=(1000,), name="left behind").start()


class BusyThread(Attack):
    outcome = "pass"

    def act(self) -> None:
        def talk() -> None:
            while True:
                os.write(1, b"x")
                time.sleep(0.001)

        threading.Thread(target=talk, name="talking", daemon=True).start()


class Child(Attack):
    outcome = "pass"

    def act(self) -> None:
        kept.append(subprocess.Popen(["sleep", "1000"]))


class DetachedChild(Attack):
    outcome = "pass"

    def act(self) -> None:
        script = "trap '' TERM HUP INT; sleep 1000 & sleep 1000"
        kept.append(subprocess.Popen(["sh", "-c", script], start_new_session=True))


class Daemon(Attack):
    outcome = "pass"

    def act(self) -> None:
        if (child := os.fork()) == 0:
            os.setsid()
            if os.fork() == 0:
                os.execvp("sleep", ["sleep", "1000"])
            os._exit(0)
        os.waitpid(child, 0)


class Fork(Attack):
    outcome = "pass"

    def act(self) -> None:
        if (child := os.fork()) == 0:
            time.sleep(1000)
            os._exit(0)
        kept.append(child)


class ForkAnswers(Attack):
    outcome = "pass"

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
    def act(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(1)


class AtExit(Attack):
    outcome = "pass"

    def act(self) -> None:
        atexit.register(print, "\x1b[31mat exit")


class Switching(Attack):
    outcome = "pass"

    def act(self) -> None:
        sys.setswitchinterval(100.0)


class Digits(Attack):
    outcome = "pass"

    def act(self) -> None:
        if hasattr(sys, "set_int_max_str_digits"):
            sys.set_int_max_str_digits(640)


class Hooks(Attack):
    outcome = "pass"

    def act(self) -> None:
        sys.excepthook = sys.unraisablehook = threading.excepthook = lambda *_: os._exit(0)
