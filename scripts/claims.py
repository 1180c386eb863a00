"""Reject words that promise protection which tmuxmcp does not give.

A terminal for an agent runs commands with its user's authority. Text that calls a socket, a
smaller tool list or an annotation protection would be untrue, so every text file of the
repository is read and each promise must be denied in its own clause, as in "this is not an OS
sandbox". The migration page and the changelog are exempt: they name what they replace.

    python scripts/claims.py [FILE ...]     exit status 1 when a claim is found
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
EXEMPT = frozenset({"CHANGELOG.md", "docs/migration.md"})


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b", re.IGNORECASE)


# What tmuxmcp can never promise.
PROMISE = _words(
    r"(?<!::)sand[- ]?box\w*",
    r"safe(?:ty)?[- ](?:tier|level|mode|profile)s?",
    r"secur(?:e|ity)[- ](?:tier|level|mode|profile)s?",
    r"safe[- ](?:command|tool|call)s?",
    r"safe[- ](?:by[- ]default|to[- ](?:run|call|allow|approve|auto-\w+))",
    r"tools? (?:is|are) (?:\w+ )?safe",
    r"no[- ]shell",
    r"security[- ]boundar(?:y|ies)",
    r"(?:permission|authori[sz]ation)[- ](?:system|layer|boundary)",
    r"(?:sole|exclusive)[- ]ownership",
    r"prevents? (?:all|any|every) (?:sub)?process\w*",
    r"protects? (?:your|the) (?:system|machine|computer|host|files?)",
)
# What the operating system can promise, and tmuxmcp not.
LIMIT = _words(r"(?:contain|confine)ment", r"isolation[- ]boundar(?:y|ies)")
OPERATING_SYSTEM = _words(
    r"OS", r"operating[- ]systems?", r"(?:OS|user) accounts?", r"containers?", r"virtual machines?", r"VMs?"
)

NEGATION = _words(
    r"not(?! (?:only|just|merely|without|to worry)\b)",
    r"\w+n['\u2019]t",
    r"cannot",
    r"never",
    r"no(?! (?:doubt|matter|less)\b)",
    r"none",
    r"nothing",
    r"neither",
    r"nor",
    r"(?<!not )without",
    r"(?:rather|other) than",
    r"instead of",
    r"(?:reject|refuse|forbid|prohibit|withdraw|avoid)\w*",
)
# "Nothing leaves the ..." promises what it seems to deny.
ESCAPE = _words(
    r"leav\w+", r"escap\w+", r"exits?", r"break\w*", r"out of", r"outside", r"beyond", r"bypass\w*"
)
SENTENCE_END = re.compile(r"[.!?;:](?=[\s\"'`)*_\]]|$)|\|")
CLAUSE_END = re.compile(
    r"\b(?:but|yet|however|although|though|because|so|therefore|while|whereas)\b"
    r"|\band (?=(?:it|this|that|these|they|we|you|the|every|each|all|its|our"
    r"|is|are|runs?|keeps?|provides?|offers?|gives?|stays?|makes?)\b)"
    r"|, ?(?=(?:in|inside|within|by|with|as|under|through|via|thanks|since|which|it|this|that|they|we|you)\b)"
    r"|, ?(?=[^,]*\b(?:is|are|was|were|runs?|stays?|keeps?)\b[^,]*$)",
    re.IGNORECASE,
)

NEW_BLOCK = re.compile(r"\s*(?:[-*+]\s|\d+[.)]\s|\||```|#{2,6}\s)")
MARKUP = re.compile(r"^\s*(?:#+|//|>|[-*+](?=\s))?\s*")


class Claim(NamedTuple):
    line: int
    phrase: str
    clause: str


class _Block(NamedTuple):
    """Lines that read on from one to the next, joined; `starts` pairs an offset with its line."""

    text: str
    starts: list[tuple[int, int]]

    def line_at(self, offset: int) -> int:
        return max(line for start, line in self.starts if start <= offset)


def claims(text: str) -> list[Claim]:
    """The promises in a text that their own clause does not deny."""
    found = []
    for block in _blocks(text):
        for pattern in (PROMISE, LIMIT):
            for match in pattern.finditer(block.text):
                sentence = _after_last(SENTENCE_END, block.text[: match.start()])
                clause = _after_last(CLAUSE_END, sentence)
                if _denied(clause) or (pattern is LIMIT and OPERATING_SYSTEM.search(sentence)):
                    continue
                found.append(Claim(block.line_at(match.start()), match.group(), clause))
    return sorted(found)


def _blocks(text: str) -> Iterator[_Block]:
    joined, starts, comment = "", list[tuple[int, int]](), False
    for number, line in enumerate(text.splitlines(), 1):
        was_comment, comment = comment, line.lstrip().startswith(("#", "//"))
        if joined and (not line.strip() or NEW_BLOCK.match(line) or comment != was_comment or '"""' in line):
            yield _Block(joined, starts)
            joined, starts = "", []
        starts.append((len(joined), number))
        joined += MARKUP.sub("", line, count=1).rstrip() + " "
    if joined:
        yield _Block(joined, starts)


def _after_last(end: re.Pattern[str], text: str) -> str:
    return text[max((match.end() for match in end.finditer(text)), default=0) :]


def _denied(clause: str) -> bool:
    negations = list(NEGATION.finditer(clause))
    return bool(negations) and not ESCAPE.search(clause, negations[-1].end())


def repository_files() -> list[Path]:
    """Every file that is, or would be, under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [ROOT / name for name in sorted(set(listed.stdout.split("\0"))) if name and name not in EXEMPT]


def main(arguments: list[str]) -> int:
    count = 0
    for path in [Path(name) for name in arguments] or repository_files():
        if not path.is_file():
            continue
        data = path.read_bytes()
        if b"\0" in data:
            continue
        for claim in claims(data.decode("utf-8", "replace")):
            count += 1
            print(f'{path}:{claim.line}: promises "{claim.phrase}": ... {claim.clause[-120:]}{claim.phrase}')
    if count:
        print(
            f"{count} promises of protection. Say what it is not, in the same clause, or name what it does."
        )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
