"""A container with systemd as its first process, in its own namespaces and control group. Both are removed at the end."""

import os
import subprocess
import time
from pathlib import Path

from conftest import wait_until

# Enter the control group first, because it becomes the root of the container's cgroup namespace.
START = 'echo $$ > "$0/cgroup.procs" && exec unshare --fork --kill-child --mount --pid --cgroup --net --uts --ipc bash -c "$@"'


class Container:
    """A container that is made by a shell script. The script runs in the new namespaces with the given arguments and becomes systemd."""

    def __init__(self, folder, name, script, *arguments, path="/usr/sbin:/usr/bin"):
        self.console, self.path, self.first = folder / "console", path, None
        hierarchies = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if line.split()[2] == "cgroup2"]
        assert hierarchies, "no control groups of version 2 are mounted"
        self.group = Path(hierarchies[0]) / f"namehop-{name}-{os.getpid()}"
        self.group.mkdir()
        command = ["bash", "-c", START, str(self.group), script, "bash", *map(str, arguments)]
        with open(self.console, "wb") as console:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True)
        try:
            wait_until(self._is_up, what="systemd is up")
        except BaseException as error:
            self.end()
            raise AssertionError(f"no systemd can be booted here: {self.console.read_text(errors='replace')[-2000:]}") from error

    def _is_up(self):
        assert self.process.poll() is None, "the container ended"
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        # Until the container has its own root, systemctl would be the program of the host, which must not be called.
        if not children or Path(f"/proc/{children[0]}/comm").read_text().strip() != "systemd":
            return False
        self.first = children[0]
        return self.says("systemctl", "is-system-running") in ("running", "degraded")

    def run(self, *command, check=True):
        inside = ["nsenter", "-t", self.first, "-m", "-p", "-n", "-u", "-i", "-C"]
        environment = ["env", "-i", f"PATH={self.path}", "DEBIAN_FRONTEND=noninteractive"]
        done = subprocess.run([*inside, *environment, *map(str, command)], capture_output=True, text=True, timeout=120)
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}\n{self.journal()}"
        return done

    def says(self, *command):
        """Returns the output of a command, even if the command fails."""
        return self.run(*command, check=False).stdout.strip()

    def journal(self):
        return self.says("journalctl", "-u", "namehop", "--no-pager", "-o", "cat")

    def property(self, name):
        """Returns a property of the service."""
        return self.says("systemctl", "show", "-p", name, "--value", "namehop")

    def end(self):
        # The first process of the container ends with its parent, and all other processes end with the first one.
        self.process.kill()
        self.process.wait(20)
        end = time.monotonic() + 10
        while self.group.exists():
            for group in sorted(self.group.rglob("*/"), key=lambda group: -len(group.parts)):
                if group.is_dir():
                    try:
                        group.rmdir()
                    except OSError:
                        pass
            try:
                self.group.rmdir()
            except OSError:
                assert time.monotonic() < end, f"{self.group} is in use"
                time.sleep(0.05)
