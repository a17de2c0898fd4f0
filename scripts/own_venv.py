"""An environment of its own for a script: made once in target/, then the script runs again inside it."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def enter(name, packages, optional=()):
    """Returns inside an environment that holds `packages`; makes it, and starts the script again in it, else.

    `optional` are lists of arguments of pip, tried in order until one installs; a loud line says so when none does.
    """
    home = ROOT / "target" / f"venv-{name}"
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if pathlib.Path(sys.prefix).resolve() == home.resolve():
        return
    wanted = "\n".join([*packages, *(" ".join(words) for words in optional)])
    stamp = home / "packages.txt"
    if not stamp.is_file() or stamp.read_text() != wanted:
        print(f"making {home.relative_to(ROOT)} with {', '.join(packages)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run(pip + packages, check=True)
        if optional and not any(subprocess.run(pip + words).returncode == 0 for words in optional):
            print(f"NOT INSTALLED, running without: {' or '.join(map(' '.join, optional))}", file=sys.stderr)
        stamp.write_text(wanted)
    sys.stderr.flush()
    sys.exit(subprocess.run([str(python), *sys.argv]).returncode)
