"""Says in plumdp's words what DuckDB reports: what is wrong, in which file and line, and how to fix it."""

from __future__ import annotations

import re

from plumdp.base.errors import DataError, Option

DAMAGED = "the file is damaged, or was not written to its end; write or copy it again"
COPIES = "plumdp-copy-"  # how folders are called in which files are that DuckDB reads instead of others
_WRITING = re.compile(r"""Could not write file \\*"(.*?)(?:\.plumdp-\w+/)?([^/]*?)\\*": ([^"]+)""")
_NOT_UTF_8 = r"not utf-8 encoded|Invalid unicode|invalid UTF"
_OTHERWISE = (", or say how it is encoded, for example with ", Option("encoding", "cp1252"))
_REASONS = {
    r"No space left on device": "No space left on device; make room for results and for temporary files",
    r"^Out of Memory Error|failed to (?:pin|offload) block": "there is not enough memory to count it; give fewer files "
    "at a time",
    r"^Expected Number of Columns: (\d+) Found: (\d+)": r"this line has \2 values, but the first line names \1 "
    "columns; correct the line",
    r"reached an invalid state": "some lines end with a carriage return and some do not, or there is a quotation mark "
    "within a value; write the file again, with all lines alike and two quotation marks for one within a value",
    r"unterminated quote": "a quotation mark is opened that is not closed; close it, and write two of them for one "
    "within a value",
    _NOT_UTF_8: "this is not text in UTF-8; save the file as UTF-8",
    r"Maximum line size of (\d+) bytes": r"the line has more than \1 bytes; look for a quotation mark that is open",
    r"Malformed JSON.*?at byte (\d+) in (?:record/value|line) (\d+)": r"this is not JSON from byte \1 of record \2 on; "
    "correct it, or write the file again",
    r"GZIP|ZSTD|Unknown frame|zstd": "it cannot be unpacked; it is damaged, or not what its name says",
    r'cast column "(.*?)" from type (.*?) to (.*?):': r"column \1 has the type \2 here, but \3 in another file; give "
    "it the same type in all files",
    r"required extension '(\w+)": r"DuckDB needs its extension \1 for it, which is not installed and could not be "
    r"downloaded; run INSTALL \1 in DuckDB where there is a network, or copy the files to this computer first",
    r"extension": "DuckDB lacks an extension for it, and could not install one; copy the files to this computer first",
    r"HTTP 404": "there is no such file",
    r"HTTP 40[13]|Forbidden": "access is denied; give DuckDB the credentials, with CREATE PERSISTENT SECRET",
    r"hostname|Could not connect": "the server cannot be reached; check the name and the network",
    r"Cannot open file|No files found|HTTP|connection": "the file cannot be opened; check its name and permissions",
    r"magic bytes|too small to be|enough bytes|[Ff]ailed to read|decompress|TProtocol|thrift|[Cc]orrupt": DAMAGED,
    r"^Conversion Error": "a value does not have the type of its column; correct the value, or the type",
}
_FILES = (
    r"\['(\w+://[^']+)'",  # as it was asked for; elsewhere it may have the name of its server
    r"'(\w+://[^']+)'",
    r"^  file = (.+)$",
    r"""[Ff]ile \\?["'](.+?)\\?["']""",
    r"pattern \"(.+?)\"",
    r": (\S+\.\w+)$",
)
_CLASS = re.compile(r"^(?:[A-Z]\w+ )+Error: (?:[A-Z]\w* Error\w*: )?")
_LONGEST = 200  # characters of what nobody has translated


def in_our_words(text: str) -> DataError:
    """Return the error for what DuckDB says.

    >>> print(in_our_words("Invalid Input Error: No magic bytes found at end of file 'log.parquet'"))
    log.parquet: the file is damaged, or was not written to its end; write or copy it again
    """
    if match := _WRITING.search(text):
        return DataError(f"{match[1]}{match[2]} cannot be written: {match[3]}")
    file = next((match[1] for pattern in _FILES if (match := re.search(pattern, text, re.MULTILINE))), "the data")
    file = name_of_copy(file)
    line = re.search(r"CSV Error on Line: (\d+)", text)
    where = f"{file}, line {int(line[1]):,}" if line else file
    return DataError(f"{where}: {reason_in_our_words(text)}", *(_OTHERWISE if re.search(_NOT_UTF_8, text) else ()))


def reason_in_our_words(text: str) -> str:
    """Return the problem, without the file and the line."""
    for pattern, sentence in _REASONS.items():
        if match := re.search(pattern, text, re.MULTILINE | re.DOTALL):
            return match.expand(sentence)
    said = _CLASS.sub("", text.strip().partition("\n")[0])[:_LONGEST]
    return f"this cannot be read or written ({said})"


def name_of_copy(file: str) -> str:
    """Return the name of the file that a copy was made of; other files as they are."""
    return re.sub(rf"^.*[\\/]{COPIES}[^\\/]*[\\/]", "", file)
