"""The package runs on Linux, macOS and Windows: nothing in it is there on one of them only, unless it asks first."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

UNIX_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "curses", "syslog", "posix", "readline"}
UNIX_NAMES = {
    *(f"os.{name}" for name in ("fork", "forkpty", "sched_getaffinity", "sched_setaffinity", "sysconf", "killpg")),
    *(f"os.{name}" for name in ("getuid", "geteuid", "getgid", "setsid", "uname", "mkfifo", "nice", "getloadavg")),
    *(f"os.{name}" for name in ("statvfs", "posix_fadvise", "posix_fallocate", "pread", "pwrite", "sendfile", "wait")),
    *(f"signal.{name}" for name in ("SIGALRM", "alarm", "setitimer", "SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2")),
    *(f"time.{name}" for name in ("tzset", "clock_gettime")),
    *(f"mmap.{name}" for name in ("MAP_SHARED", "MAP_PRIVATE", "PROT_READ", "PROT_WRITE")),
}
WIDTHS = {*(f"np.{name}" for name in ("longdouble", "float128", "clongdouble", "long", "ulong")), "ctypes.c_long"}
INSTEAD = {
    "os.rename": "fails on Windows if the target exists: use os.replace",
    "os.system": "runs a shell of the system's own: use subprocess.run with a list",
    "os.popen": "runs a shell of the system's own: use subprocess.run with a list",
}
UNIX_PLACES = re.compile(r"^/(tmp|proc|sys|dev|usr|var|etc|home|root|opt|bin)(/|$)")
FOLDER_NAME = re.compile(r"(path|folder|directory|parent|root)$")
NO_FILES = {"tarfile", "zipfile", "webbrowser", "os", "gzip", "archive"}  # their open() is another one
RENAMES = {"plumdp/result/folder.py"}  # a folder, whose old one was moved out of the way


def dotted(node: ast.expr) -> str:
    """Return an expression such as ``os.path`` as a text, and "" for others."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def asks_first(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return whether something is done only after a look at the platform, or where an error is caught."""
    while node in parents:
        child, node = node, parents[node]
        asked = node.test if isinstance(node, ast.If | ast.IfExp) else None
        asked = node.values[0] if isinstance(node, ast.BoolOp) else asked
        if asked not in (None, child) and re.search(r"sys\.platform|os\.name|hasattr\(", ast.unparse(asked)):
            return True
        if isinstance(node, ast.Try) and child in node.body:
            caught = " ".join(ast.unparse(handler.type) for handler in node.handlers if handler.type)
            if re.search("AttributeError|ImportError|ModuleNotFoundError", caught):
                return True
    return False


def _of_imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    else:
        return
    for name in names:
        if name in UNIX_MODULES | UNIX_NAMES:
            yield f"{name} is not there on Windows: import it under try … except ImportError"
        elif name in INSTEAD:
            yield f"{name} {INSTEAD[name]}"


def _of_names(node: ast.AST) -> Iterator[str]:
    name = dotted(node) if isinstance(node, ast.Attribute) else ""
    if name in UNIX_NAMES:
        yield f"{name} is not there on Windows: ask hasattr first, or catch AttributeError"
    elif name in WIDTHS:
        yield f"{name} has another width on Windows: name the width, as in np.float64"
    elif name in INSTEAD:
        yield f"{name} {INSTEAD[name]}"
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if UNIX_PLACES.match(node.value):
            yield f"{node.value!r} is a place on Unix: use tempfile, or look at sys.platform first"
        if re.search(r"%-[a-zA-Z]", node.value) and "%Y" in node.value:
            yield f"{node.value!r}: numbers without zeros (%-d) are not known to strftime on Windows"


def _of_texts(node: ast.AST) -> Iterator[str]:
    """Yield files that are read or written as text in whatever encoding the machine has."""
    if not isinstance(node, ast.Call):
        return
    keywords = {keyword.arg for keyword in node.keywords}
    called = dotted(node.func)
    name = node.func.attr if isinstance(node.func, ast.Attribute) else called
    mode_at = {"open": 1 if called == "open" else 0, "NamedTemporaryFile": 0, "TemporaryFile": 0}.get(name)
    modes = [k.value for k in node.keywords if k.arg == "mode"]
    if mode_at is not None:
        modes += node.args[mode_at : mode_at + 1]
    mode = next((m.value for m in modes if isinstance(m, ast.Constant)), "w+b" if "Temporary" in name else "r")
    if name in ("open", "read_text", "write_text", "NamedTemporaryFile", "TemporaryFile", "fdopen"):
        is_other = isinstance(node.func, ast.Attribute) and dotted(node.func.value) in NO_FILES and name == "open"
        if not is_other and "b" not in str(mode) and "encoding" not in keywords:
            yield f'{name}(…) without encoding="utf-8" is in a code page on Windows'
    if name == "NamedTemporaryFile" and not {"delete", "delete_on_close"} & keywords:
        yield "a NamedTemporaryFile cannot be opened again on Windows: delete=False, or a TemporaryDirectory"


def _of_calls(node: ast.AST, path: str) -> Iterator[str]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        is_path = len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Dict)
        if node.func.attr == "rename" and is_path and dotted(node.func) != "os.rename" and path not in RENAMES:
            yield "rename(…) fails on Windows if the target exists: use replace(…)"
        if node.func.attr in ("get_context", "set_start_method") and "fork" in ast.unparse(node):
            yield "processes cannot be forked on Windows: use spawn"
    if isinstance(node, ast.JoinedStr):
        for before, after in zip(node.values, node.values[1:], strict=False):
            is_folder = isinstance(before, ast.FormattedValue) and FOLDER_NAME.search(dotted(before.value))
            if is_folder and isinstance(after, ast.Constant) and re.match(r"/\w", after.value):
                yield f"{ast.unparse(node)} joins a path by a slash: use Path(…) / …"


def unportable(path: str, source: str) -> list[str]:
    """Return what in one file, given by its path below the source, would not work everywhere."""
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found = []
    for node in ast.walk(tree):
        problems = [*_of_imports(node), *_of_names(node)]
        problems = [] if problems and asks_first(node, parents) else problems
        found += [(node.lineno, text) for text in [*problems, *_of_texts(node), *_of_calls(node, path)]]
    return [f"src/{path}:{line}: {text}" for line, text in sorted(found)]


@pytest.mark.slow
def test_nothing_in_the_package_is_there_on_one_system_only():
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 100
    found = [
        problem
        for file in files
        for problem in unportable(file.relative_to(SOURCE).as_posix(), file.read_text(encoding="utf-8"))
    ]
    assert not found, "\n" + "\n".join(found)


BAD = {
    "import resource": "resource is not there on Windows",
    "from os import fork": "os.fork is not there",
    "import os\ncores = len(os.sched_getaffinity(0))": "os.sched_getaffinity is not there",
    "import signal\nsignal.signal(signal.SIGALRM, f)": "signal.SIGALRM is not there",
    "folder = '/tmp/plumdp'": "'/tmp/plumdp' is a place on Unix",
    "Path('/proc/self/status')": "is a place on Unix",
    "os.rename(a, b)": "os.rename fails on Windows if the target exists",
    "temporary.rename(target)": r"rename\(…\) fails on Windows",
    "open(path)": "without encoding",
    "Path(path).open('w')": "without encoding",
    "path.read_text()": "without encoding",
    "path.write_text(text)": "without encoding",
    "NamedTemporaryFile('w', delete=False)": "without encoding",
    "NamedTemporaryFile()": "cannot be opened again on Windows",
    "f'{folder}/counts.parquet'": "joins a path by a slash",
    "f'{self.folder}/counts.parquet'": "joins a path by a slash",
    "x.astype(np.longdouble)": "np.longdouble has another width on Windows",
    "date.strftime('%-d %B %Y')": "not known to strftime on Windows",
    "multiprocessing.get_context('fork')": "cannot be forked",
    "try:\n    import fcntl\nexcept OSError:\n    pass": "fcntl is not there",
}
GOOD = (
    "try:\n    import fcntl\nexcept ImportError:\n    fcntl = None",
    "cores = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()",
    "if sys.platform == 'linux':\n    text = Path('/proc/self/status').read_text(encoding='utf-8')",
    "try:\n    size = os.sysconf('SC_PAGE_SIZE')\nexcept (AttributeError, ValueError):\n    size = 0",
    "os.replace(a, b)\ntemporary.replace(target)",
    "frame.rename({'a': 'b'})",
    "open(path, 'rb')\npath.open('wb')\npath.open(encoding='utf-8')\ntarfile.open(path)",
    "NamedTemporaryFile('w', encoding='utf-8', delete=False)\nTemporaryFile()",
    "folder / 'counts.parquet'\nf'{above}/{below}'",
)


@pytest.mark.parametrize("source", BAD)
def test_what_would_fail_elsewhere_is_found(source):
    (problem,) = unportable("module.py", source)
    assert re.search(BAD[source], problem)


@pytest.mark.parametrize("source", GOOD)
def test_what_works_everywhere_is_let_pass(source):
    assert unportable("module.py", source) == []


@pytest.mark.slow
def test_every_module_can_be_imported_without_the_modules_of_unix():
    """As on Windows: what is not there raises ImportError or AttributeError."""
    modules = [
        ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for file in sorted(SOURCE.rglob("*.py"))
        if file.name != "__main__.py"
    ]
    code = f"""
import os, sys, signal, tempfile, asyncio, multiprocessing, subprocess
for name in {sorted(UNIX_MODULES - {"posix", "pwd", "grp"})}:
    sys.modules[name] = None
for name in {sorted(UNIX_NAMES)}:
    module, _, name = name.partition(".")
    if module in ("os", "signal") and name not in ("uname", "fork", "getuid", "sysconf"):  # standard modules need them
        vars(sys.modules[module]).pop(name, None)
from importlib import import_module
for name in {modules}:
    try:
        import_module(name)
    except ImportError as error:
        if type(error).__name__ != "MissingExtra" and error.name not in ("stormpy", "gymnasium"):
            raise
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
def test_output_to_a_file_is_utf_8_whatever_code_page_the_system_has(tmp_path):
    """On Windows, redirected output has a code page such as 1252, which has no →."""
    log = tmp_path / "flights.csv"
    log.write_text("x,y,action,next_x,next_y\n0,0,east,1,0\n0,0,east,7,0\n", encoding="utf-8")
    command = ["-c", "from plumdp.cli import main; main()", "certify", "glider:11,9", str(log), "--json"]
    ended = subprocess.run(
        [sys.executable, *command], capture_output=True, env=os.environ | {"PYTHONIOENCODING": "cp1252"}, cwd=tmp_path
    )
    assert "→" in json.loads(ended.stdout.decode("utf-8"))["error"]["message"], ended.stderr
