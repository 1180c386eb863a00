"""Commands in the POSIX grammar, with what bash, zsh, ksh and mksh add to it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.dialects import Compare, Entry, Shell, blocks, lines, messages

HEREDOCS = blocks(r"""
cat <<'PY'
print(1)
PY
%
cat <<E
$((1 + 1)) ${HOME:+home} `echo sub` $(echo new) \$x \\ \`
E
%
cat <<'E'
$((1 + 1)) ${HOME} `echo sub` $(echo new) \$x \\
E
%
cat <<"E F"
quoted delimiter $x
E F
%
cat <<A; cat <<B
first
A
second
B
%
cat <<A - <<B
lost
A
kept
B
%
x=$(cat <<E
substituted $((6 * 7))
E
); echo "[$x]"
%
heredoc_f() { cat <<E
function $1
E
}; heredoc_f one; heredoc_f two
%
for i in 1 2; do cat <<E
loop $i
E
done
%
while read -r a b; do echo "$b $a"; done <<E
1 2
3 4
E
%
cat <<E
E
%
cat <<E
# no comment; no 'quote" & no ( \\ end
E
echo after
%
cat <<E >/dev/null
silent
E
echo $?
%
sh <<'E'
echo inner; exit 9
E
%
cat <<日本
wide delimiter
日本
""")
"""Here-documents whose text ends with their last delimiter."""

SCRIPTS = blocks(r"""
if true
then
  echo yes
else
  echo no
fi
%
case 'a b' in
'a b') echo quoted;;
esac # done
%
greet() {
  local_name=$1
  echo "hello, $local_name"
  return 7
}
greet world
%
eval "echo 'a
b'"
%
echo a\
b; echo 'c\
d'; echo "e\
f"
%
echo one &&
echo two ||
echo three
%
i=0; while [ $i -lt 5 ]; do i=$((i + 1)); echo $i; done; unset i
%
i=3; until [ $i -eq 0 ]; do printf '%s ' $i; i=$((i - 1)); done; echo; unset i
%
case word in w*) echo match ;; *) echo none ;; esac
%
recurse() { [ $1 -eq 0 ] || { echo $1; recurse $(($1 - 1)); }; }; recurse 5
%
{ echo one; echo two; }
%
{ echo to; } >/dev/null; { echo err; } >&2
%
( echo sub; (exit 3) ); echo $?
%
(exit 42)
%
(cd / && pwd); cd /usr && pwd; cd "$OLDPWD"
%
! true
%
! false && echo negated
%
true && false || echo fallback
%
false; false; true
%
true; false
%
set -- one 'two three' four; echo $# "$2"; set --
%
x='a  b'; echo $x; echo "$x"; unset x
%
IFS_KEPT=$IFS; IFS=:; x=a:b:c; set -- $x; echo $#; IFS=$IFS_KEPT; set --; unset x
%
x=1 y=2; echo $x$y; unset x y; echo "${x-unset} ${y:-empty}"
%
eval 'echo nested; eval "echo deeper; exit_code() { return 4; }"'; exit_code
%
trap 'echo trapped' USR1; sh -c 'kill -USR1 $PPID'; trap - USR1
%
(trap 'echo leaving' EXIT; echo inside; exit 6)
%
printf '%s\n' a b c | while read -r l; do echo "[$l]"; done
%
umask 027; umask; umask 022
%
command -v cd; command echo via command
%
exec 5>&1; echo on five >&5; exec 5>&-
%
read -r x </dev/null; echo "$? [$x]"; unset x
%
test 5 -gt 3 && echo greater; [ -d / ] && echo directory; [ a = b ]
""")

EXPANSIONS = lines(r"""
echo $((2 + 3 * 4)) $((7 / 2)) $((7 % 3)) $((1 << 10)) $(( (2 + 3) * 4 ))
x=5; echo $((x * x)) $((x > 3)) $((-x)); unset x
echo $((0x1f)) $((5 - -3)) $(( 1 ? 2 : 3 ))
x=file.tar.gz; echo ${x%.gz} ${x%%.*} ${x#*.} ${x##*.} ${#x}; unset x
echo ${UNSET_A-default} ${UNSET_B:-'quoted default'} "${UNSET_C:+nothing}"
echo $(echo $(echo $(echo nested)))
echo `echo \`echo back\``
echo "$(printf 'a\nb\n\n\n')"
echo "quoted $(echo "inner 'q'") end"
echo ~ | grep -c /
echo '*' "*" \*
echo /et[c] /us?
echo "dollar $ alone" $ "a$"
echo "!" "!!" '!x' a!b !
echo wow!
echo !nothing !1 !-1
echo a{ '{' '}'
echo a=b d= '=e'
echo %1 ^a^b +y -z @ ,
printf '%5d|%-5s|%x|%c|%%|%b\n' 42 ab 255 char 'tab\there'
printf '%s-%s\n' a b c
printf '\101\102\n'
printf 'no newline'; echo ' then one'
echo -n no newline; echo; echo -e 'x\ty'
echo 'back\slash' "back\slash" back\\slash
echo 'a\nb'
""")

# What only bash, zsh, ksh and mksh have; then what mksh has not.
RICH = lines(r"""
cat <<<'here string'
cat <<<"$(seq 1 3)"; echo $?
read -r x <<<'  padded  '; echo "[$x]"; unset x
[[ abc == a* && 1 -lt 2 ]] && echo extended
[[ a < b ]]; echo $?
((1 + 1)); echo $?; ((0)); echo $?
list=(one 'two words' three); echo ${#list[@]} "${list[1]}"; unset list
list=(a b c); for each in "${list[@]}"; do echo "$each"; done; unset list
echo {1,2,3}x{a,b}
x=abcdef; echo ${x:2:3} ${x/cd/-}; unset x
echo $'tab\there' $'new\nline' $'quote\''
typeset -i n=5; n+=2; echo $n; unset n
select_menu() { return 12; }; select_menu
""")
SUBSTITUTIONS = lines(r"""
cat <(echo substituted)
paste <(seq 1 3) <(seq 4 6)
diff <(echo a) <(echo b)
""")

# An unfinished "[[" is left out: after it bash 5.2 takes no right one for the rest of its life.
SYNTAX_ERRORS = lines(r"""
echo "abc
echo 'abc
echo `abc
echo $(
echo ${
echo $((1
(
)
{
}
((
echo $'
echo =c
echo ~x
fi
done
esac
then
do
if
if true
if true; then
for
for i in 1 2; do
case x in
; true
| cat
&& true
true | | true
true && && true
true ;; true
echo a )
echo ( a
f() {
while true; do
function
echo >
echo <
cat <<<
echo c; fi
'
"
`
$(
<(
!
! !
a=(
echo ok; (
""")

ERRORS = lines(r"""
echo ${UNSET_D?}; echo not reached
echo ${UNSET_E:?with words}; echo not reached
echo $((1 / 0)); echo after
echo $((1 +)); echo after
cd /nonexistent
cd /nonexistent && echo no || echo yes
cat </nonexistent/file; echo $?
echo x >/nonexistent/file; echo $?
: >/nonexistent/file; echo after
readonly RO_A=1; RO_A=2; echo after
[ 1 -eq a ]; echo $?
[ ]; [ a b c d e ]; echo $?
shift 99; echo $?
kill -0 99999999
kill
unset -z
. /nonexistent/script; echo $?
no_such_a | cat; echo $?
no_such_c || echo rescued
type no_such_d
set -o no_such_option; echo $?
export 1x=2; echo $?
alias no_such_alias
wait 99999999; echo $?
break; echo after
""")


def heredocs(shell: Shell) -> Iterator[Entry]:
    yield from HEREDOCS
    yield from (
        "cat <<-E\n\t\tstripped\n\tE\n",
        "cat <<-'E'\n\tone\n\t\ttwo  \n  three\tx\nE",
        "cat <<E | tr a-z A-Z | sed 's/^/> /'\npiped\nE\n",
        "(cat <<E)\nsubshell\nE\n",
        "cat <<E\n\n\nE\n\n",
        "cat <<_END_OF_TEXT_\nEOF\n END_OF_TEXT_\n_END_OF_TEXT_\n",
        "cat <<E | wc -l\n" + "line\n" * 3000 + "E",
        f"cat <<E\n{'x' * 5000}\nE",
    )
    yield from messages(["cat <<E\nnever closed", "cat <<", "cat <<E"])


def scripts(shell: Shell) -> Iterator[Entry]:
    yield from SCRIPTS
    yield 'for i in a \'b c\' "d\n e"; do\n\techo "<$i>"\ndone'
    yield "\n\n# leading comment\n\necho body\n# trailing comment\n"


def expansions(shell: Shell) -> Iterator[Entry]:
    yield from EXPANSIONS
    if shell.name != "dash":
        yield from RICH
    if shell.name not in ("dash", "mksh"):
        yield "for ((i = 0; i < 3; i++)); do echo $i; done; unset i"
        yield from SUBSTITUTIONS
    if shell.name in ("bash", "zsh"):
        yield "echo out |& cat"


def errors(shell: Shell) -> Iterator[Entry]:
    """What the shell itself complains about."""
    yield from messages(SYNTAX_ERRORS)
    yield from messages(["echo a\n)", "echo b\n(", "echo one\necho two\nif\n"])
    yield from messages(ERRORS)
    yield f"no_such_command_{'x' * 200}", Compare.MESSAGES


def jobs(shell: Shell) -> Iterator[Entry]:
    yield "sleep 0.01 &", Compare.OUTPUT, 1
    yield "sleep 0.01 & echo started", Compare.OUTPUT, 1
    yield "sleep 0.02 & wait; echo waited", Compare.OUTPUT, 1
    yield "sh -c 'exit 5' & wait $!; echo $?", Compare.OUTPUT, 1
    yield "sleep 0.01 & sleep 0.02 & wait", Compare.OUTPUT, 2
    yield "(sleep 0.01 & wait; echo quiet)"
    yield "true & true & true & wait", Compare.OUTPUT, 3
    yield "sleep 5 & sleep 0.1; kill $!; wait $! 2>/dev/null; echo $?", Compare.OUTPUT, 1
    yield "(sleep 0.05; echo late) & wait", Compare.OUTPUT, 1
    yield "&", Compare.STATUS
    yield "sleep 0.01 &;", Compare.STATUS


KINDS = (heredocs, scripts, expansions, errors, jobs)
