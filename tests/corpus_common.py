"""Commands that every shell understands, and nonsense that none does."""

from __future__ import annotations

from collections.abc import Iterator

from tests.dialects import Compare, Entry, Shell, messages, words

ALPHABET = [
    *"'\"\\`$#!;&|<>()[]{}*?~%^=-+:,./@_ \t\n",
    *words(r"!! !x $HOME $( ${ $? \\ \n '' -- && <<E a b7 word EOF"),
    *words("é Á ß 日本 한 😀 e\u0301 Ω שלום"),
    "\u00a0",
    "  ",
]


def nasty(shell: Shell, length: int) -> str:
    return "".join(shell.random.choices(ALPHABET, k=length))


def quoting(shell: Shell) -> Iterator[Entry]:
    for number in range(64):
        text = nasty(shell, shell.random.choice((1, 2, 3, 5, 8, 13, 40)))
        quote = shell.quotes[number % len(shell.quotes)]
        yield f"{shell.show} {quote(text)}"
    for quote in shell.quotes:
        yield f"{shell.show} {quote(''.join(ALPHABET))}"


def one_byte(shell: Shell) -> Iterator[Entry]:
    # Left out: ">" would be a file, "&" a job, and a shell can mean itself by ".".
    yield from messages("'\"`$#;|()]{}?^=+,:!<-@/ \t\n" + "0z")
    yield "\\", Compare.STATUS
    yield "[", Compare.STATUS if shell.name == "fish" else Compare.MESSAGES


def endings(shell: Shell) -> Iterator[Entry]:
    yield from messages(
        f"echo end{each}" for each in ("", " ", ";", " ;", "\n", "\n\n\n", "\t", ";;", " \\", "\\")
    )
    yield from messages(f"echo end {each}" for each in ("# note", "# it's", '# "', "# (", "#"))
    yield from messages(["# only a comment", "# (\necho two", "\n\necho late", "   echo early", "echo a#b"])
    yield from messages(["true &&", "true |", "true ||", "true;"])


SPACES = (
    r"|\n|\n\n| \n|   \n\n|\t\n|\n\n\nx|x\n\n\n|x\n \n|\n\nx\n\n|x  |x  \n|nonl|two\nnonl|nonl |nonl\t"
    r"| |\t| \t \n|  lead\n    deeper\n|a\tb\n|\ta\n|a\t\n|\t\t.\n|1234567\t8\n|12345678\t9\n|a \t b\n"
    r"|日\t.\n|\t日\t.\n|x\r\n|\r\n|x\r|abc\rX\n"
)


def spaces(shell: Shell) -> Iterator[Entry]:
    """Written by printf from escapes, and from the characters themselves."""
    for text in SPACES.split("|"):
        yield f"printf '{text}'"
        for escape, character in (("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r")):
            text = text.replace(escape, character)
        yield f"printf %s {shell.quote(text)}"


def unicode(shell: Shell) -> Iterator[Entry]:
    texts = words("é Á 日本語 한국어 中文，标点。 😀😃 e\u0301a\u0308 שלום العربية ไทย Ωµ ﬁ ─┼│ █▌ → ✓ ✗")
    for text in (*texts, *words("日a本b語 ｆｕｌｌ ｶﾅ 🇩🇪x 👍x naïve “q”"), "a\u00a0b", "\u3000x"):
        yield f"echo {text}"
        yield f"{shell.show} {shell.quote(text * 7)} # {text}"


def edges(shell: Shell) -> Iterator[Entry]:
    """Lines that end at, before and behind the right edge."""
    for length in (shell.width - 1, shell.width, shell.width + 1, 2 * shell.width, 3 * shell.width + 1):
        yield f"printf '%s\\n' {'x' * length} y"
        yield f"printf %s {'x' * length}"
        yield f"printf '%s\\n' {'x' * (length - 1)}日 {'日' * (length // 2)} {'日' * (length // 2)}a日"
        yield f"printf '%s\\n' {shell.quote(' ' * length)} {shell.quote('x' + ' ' * length)}"
        yield f"printf '%s\\n' {shell.quote('x' * (length - 3) + '   ')}"
        yield f"printf '%s\\n' {shell.quote('y' * (length - 1) + ' ')} z"
        yield f"printf '%s\\t%s\\n' {'x' * (length - 2)} tab"
        yield f"printf '%s\\r%s\\n' {'x' * length} over"
        yield f"printf '\\033[32m%s\\033[0m\\n' {'x' * length}"
    yield f"printf '%s\\b\\b\\b%s\\n' {'x' * shell.width} '-'"


def controls(shell: Shell) -> Iterator[Entry]:
    yield from (
        r"printf '\033[31mred\033[0m plain\n'",
        r"printf '\033[1;38;5;208mx\033[m\n\033[44m   \033[0m|\n'",
        r"printf '\033]0;a title\007after\n'",
        r"printf '\033]8;;http://example.com\033\\link\033]8;;\033\\\n'",
        r"printf '10%%\r20%%\r100%%\n'",
        r"printf 'working...\r\033[Kdone\n'",
        r"printf 'one\ntwo\n\033[1A\033[1A\r\033[KONE\n\n'",
        r"printf 'spin |\b/\b-\b\\\b \n'",
        r"printf 'over\b\b\b\bUNDER\n'",
        r"printf 'bell\007\n'",
        r"printf 'before\n\033[H\033[2J\033[3Jafter\n'",
        r"printf '\033[?25lhidden cursor\033[?25h\n'",
        "TERM=xterm clear; echo after" if shell.name != "fish" else "TERM=xterm command clear; echo after",
        r"printf 'a\vb\n'",
        r"printf 'nul:\000:\n'",
    )


def echoes(shell: Shell) -> Iterator[Entry]:
    """Whatever is typed around the command, its echo ends once at, before and behind the right edge."""
    for length in range(shell.width + 1):
        yield f"printf '%s' {'x' * length}"


def sizes(shell: Shell) -> Iterator[Entry]:
    """Commands from some bytes to 200 kB."""
    for size in (
        100,
        255,
        256,
        257,
        500,
        1000,
        1023,
        1024,
        1025,
        2000,
        4000,
        4094,
        4095,
        4096,
        4097,
        8192,
        16_384,
    ):
        yield f": {shell.quote('x' * size)}; echo {size}"
    for size in (20_000, 65_536, 131_072, 200_000):
        yield f": {shell.quote('y' * size)}; echo long {size}"
        lines = "short line  \n" * (size // 13)
        yield f": {shell.quote(lines)}; echo lines {size}"
        yield f": {shell.quote('日é😀 ' * (size // 10))}; echo wide {size}"
    text = "".join(shell.random.choices([each for each in ALPHABET if each not in "\t"], k=2500))
    yield f"{shell.show} {shell.quote(text)}"
    yield "\n".join(f"echo line {number}" for number in range(300))
    yield "; ".join(f"echo {number}" for number in range(400))
    yield f"{shell.show} {shell.quote('word ' * 4000)}"
    yield "echo " + " ".join(f"'{number}'" for number in range(3000))


def outputs(shell: Shell) -> Iterator[Entry]:
    for lines in (
        0,
        1,
        shell.height - 2,
        shell.height - 1,
        shell.height,
        shell.height + 1,
        300,
        2000,
        10_000,
    ):
        yield f"seq 1 {lines}"
    for size in (1, 1000, 20_000, 200_000):
        yield f"head -c {size} /dev/zero | tr '\\0' x"
        yield f"head -c {size} /dev/zero | tr '\\0' '\\n'"
    yield "seq 1 200000"
    yield "seq 1 120000; echo last; false"
    yield f"seq -f '%g {'-' * 150}' 1 3000"
    yield "seq -s ' ' 1 5000"


def streams(shell: Shell) -> Iterator[Entry]:
    yield from (
        "echo error >&2",
        "echo out; echo error >&2; echo out",
        "sh -c 'for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done'",
        "sh -c 'printf a; printf b >&2; printf c; printf d >&2'",
        "sh -c 'echo gone >&2' 2>/dev/null; echo kept",
        "ls /nonexistent",
        "cat /nonexistent /dev/null",
        "echo quiet >/dev/null",
        "python3 -c 'import nope'",
        "python3 -c 'print(1); import sys; print(2, file=sys.stderr); print(3)'",
        "cat </dev/null",
        "wc -c </dev/null",
        "echo piped | cat | tr p P",
        "seq 1 100000 2>/dev/null | head -n 3",
        "seq 1 100 | tail -n 2 | sort -r",
        "true | false",
        "false | true",
        "sh -c 'exit 3' | sh -c 'cat; exit 4'",
        "test -t 0; test -t 1; test -t 2",
        "stty -echo; echo silent; stty echo",
    )


def statuses(shell: Shell) -> Iterator[Entry]:
    known = (0, 1, 2, 3, 125, 126, 127, 128, 129, 130, 137, 143, 254, 255)
    for status in (*known, *shell.random.sample(range(4, 254), 20)):
        yield f"sh -c 'exit {status}'"
        yield f"echo text; sh -c 'printf nonl; exit {status}'"
    yield from messages(["no_such_command_here", "/dev/null", "/nonexistent/program", "./missing"])


def signals(shell: Shell) -> Iterator[Entry]:
    for name in ("HUP", "KILL", "TERM", "PIPE", "ALRM", "USR1", "USR2", "VTALRM", "PROF"):
        yield f"sh -c 'kill -{name} $$'", Compare.MESSAGES
        yield f"echo before; sh -c 'printf dying; kill -{name} $$'; echo after", Compare.MESSAGES


def lookalikes(shell: Shell) -> Iterator[Entry]:
    """Output that looks like a prompt or like somebody's way to find the end of a command."""
    for text in (
        *("$ ", "# ", "> ", "% ", "user@host:~$ ls", "...", "[1]+  Done    sleep 1", "(END)", "--More--"),
        *(
            "printf '\\n%s\\n' done",
            "eval 'x'; printf done",
            "START_1 END_1 0",
            "__END__0",
            "exit status 0",
            "\x1b[2m",
        ),
    ):
        yield f"printf '%s\\n' {shell.quote(text)}; printf %s {shell.quote(text)}"


def noise(shell: Shell) -> Iterator[Entry]:
    """Metacharacters at random, mostly syntax errors. None can write a file or read the terminal."""
    pieces = words(r"""' " ` $ $( ${ ( ) { } [ ] | || && ; ;; \ ! # * ? =""")
    pieces += [f"{word} " for word in words("echo true if then fi for do done")]
    pieces += ["\n", " ", " "]
    for _ in range(40):
        yield "".join(shell.random.choices(pieces, k=shell.random.randint(2, 9))), Compare.STATUS


KINDS = (
    *(quoting, one_byte, endings, spaces, unicode, edges, echoes, controls, sizes, outputs, streams),
    *(statuses, signals, lookalikes, noise),
)
