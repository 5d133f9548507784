"""Started programs: other programs read the files, or go on when the trial has ended."""

from __future__ import annotations

import base64
import os
import subprocess
import sys

from tests.hostile.preamble import Hostile, Reader, attempts, of_each, reached


class StartsAnInterpreter(Reader):
    """has a fresh Python, without any hook, read the label files"""

    def read(self, path):
        hidden = base64.b64encode(path.encode()).decode()
        code = f"import base64, sys; sys.stdout.write(open(base64.b64decode('{hidden}')).read())"
        return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout


class Forks(Reader):
    """has a fork of itself read the label files"""

    def read(self, path):
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                with open(path, "rb") as file:
                    os.write(theirs, file.read()[: 2**15])
            finally:
                os._exit(0)
        os.close(theirs)
        os.waitpid(pid, 0)
        with os.fdopen(ours, "rb") as pipe:
            return pipe.read()


class BecomesAnother(Hostile):
    """replaces its own program by another, which keeps the channel to the harness"""

    ends = ("killed", "error", "invalid")

    def steal(self):
        for _ in of_each(range(3, 64), lambda descriptor: os.set_inheritable(descriptor, True)):
            pass
        os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", "import time; time.sleep(0.2)"])


class GainsRights(Hostile):
    """asks for other rights: setuid, capabilities, a smaller score for the memory killer, a higher priority"""

    def steal(self):
        def become(user):
            pid = os.fork()
            if pid == 0:
                try:
                    os.setresuid(user, user, user)
                    os._exit(0)
                finally:
                    os._exit(1)
            if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0:
                return reached(f"user {user}")
            return ()

        def spared():
            with open("/proc/self/oom_score_adj", "r+") as file:
                file.write("-900")
            return reached("a smaller score for the memory killer")

        def first():
            os.setpriority(os.PRIO_PROCESS, 0, -15)
            return reached("a higher priority")

        def real_time():
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            return reached("real-time scheduling")

        return attempts(lambda: become(65533), spared, first, real_time)
