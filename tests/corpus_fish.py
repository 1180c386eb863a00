"""Commands in fish's grammar."""

from __future__ import annotations

from collections.abc import Iterator

from tests.dialects import Compare, Entry, Shell, blocks, lines, messages

SCRIPTS = blocks(r"""
if true
  echo yes
else
  echo no
end
%
function greet
  echo "hello, $argv[1]"
  return 7
end
greet world
%
eval "echo 'a
b'"
%
echo a\
b; echo 'c
d'
%
echo one; and
echo two
%
echo 'sh cat <<E' | cat; sh -c 'cat <<E
heredoc in sh
E'
%
set -l i 0; while test $i -lt 5; set i (math $i + 1); echo $i; end
%
switch word; case 'w*'; echo match; case '*'; echo none; end
%
function recurse; if test $argv[1] -gt 0; echo $argv[1]; recurse (math $argv[1] - 1); end; end; recurse 5
%
begin; echo one; echo two; end
%
begin; echo to; end >/dev/null; begin; echo err; end >&2
%
begin; echo inside; false; end
%
cd /usr; and pwd; cd -
%
pushd /; pwd; popd
%
not true
%
! true
%
not false; and echo negated
%
true && false || echo fallback
%
true; and false; or echo fallback
%
false; false; true
%
true; false
%
set -l x 'a  b' c; echo $x; echo "$x"; count $x
%
set -g kept 1; echo $kept; set -e kept; set -q kept; echo $status
%
eval 'echo nested; eval "echo deeper"; false'
%
printf '%s\n' a b c | while read -l l; echo "[$l]"; end
%
function temp_f --argument-names a b; echo $b $a; end; temp_f 1 2; functions -e temp_f
%
command echo via command; builtin echo via builtin
%
read -l x </dev/null; echo "$status [$x]"
%
test 5 -gt 3; and echo greater; test -d /; and echo directory; test a = b
%
false | true; echo $pipestatus
%
sh -c 'exit 3' | sh -c 'exit 4'; echo $pipestatus $status
%
for i in (seq 3); for j in (seq $i); echo -n $j' '; end; echo; end
%
while true; echo once; break; end
%
for i in 1 2 3; if test $i = 2; continue; end; echo $i; end
%
string match -rq '^a.c$' abc; echo $status
%
set -l s $status; echo $s
%
status is-interactive; true
%
echo (status function | string length)
""")

EXPANSIONS = lines(r"""
math '2 + 3 * 4'
math 7 / 2; math 7 % 3; math '2 ^ 10'
echo (math 1 + 1)(math 2 + 2)
echo $(echo modern) (echo classic)
echo (echo (echo (echo nested)))
echo "in quotes: $(echo sub)"
echo (printf 'a\nb\n\n')
printf '%s|' (printf 'a\nb c\n'); echo
echo {a,b}{1,2} x{,y}z
echo ~ | grep -c /
echo '*' "*" \*
echo /et* | grep -c etc
echo 'it\'s' "a\"b" 'back\\slash' "back\slash" back\\slash
echo 'a\nb' a\nb a\tb
echo \x41 \u65e5 \101 \e[31mred\e[0m
echo "dollar \$ escaped" '$HOME' \$HOME
echo wow! ! !! '!x' "!y"
echo a=b =c d= %1 ^a^b ~x +y -z @ ,
echo a#b '#c' "#d"
set -l x one two three; echo $x[2] $x[-1] $x[1..2] (count $x)
set -l x a b; echo pre$x; echo $x$x; echo "$x[1]-$x[2]"
set -l name x; set -l x value; echo $$name
set -l empty; echo [$empty] "[$empty]"
echo -n no newline; echo; echo -e 'x\ty'; echo -s a b c
printf '%5d|%-5s|%x|%c|%%|%b\n' 42 ab 255 char 'tab\there'
printf '%s-%s\n' a b c
printf 'no newline'; echo ' then one'
string upper abc; string length 日本; string split , a,b,c; string repeat -n 3 ab
string replace -a a b banana; string trim '  x  '; string sub -s 2 -l 3 abcdef
string join , a b c; string escape "a b'c"; string pad -w 8 x
echo abc | string collect; printf 'x\ny\n' | string collect
seq 3 | while read -l n; math $n x 2; end
cat (echo substituted | psub)
diff (echo a | psub) (echo b | psub)
contains b a b c; and echo found
set -l d (date +%Y); test $d -gt 2000; and echo recent
set -lx EXPORTED inner; sh -c 'echo $EXPORTED'
env X=1 sh -c 'echo $X'; X=2 sh -c 'echo $X'
type -t cd; type -t cat; functions -q cd; echo $status
test -n ''; echo $status; test -z ''; echo $status
""")

SYNTAX_ERRORS = lines(r"""
echo "abc
echo 'abc
echo (
echo $(
echo )
(
)
{
}
end
else
case x
if true
if true; echo a
for i in 1 2
while true
begin
switch x
| cat
&& true
true | | true
true && && true
echo $$
echo ${x}
echo $x[
echo $
echo >
echo <
echo c; end
'
"
$(
!
x=1
x = 1
$no_such_variable
$HOME
echo $1
f() { }
echo `x`
[[ a ]]
echo $((1+1))
else if true
function f; echo
and
or true
not
echo {a
echo \u
echo \xZZ
&&
||
""")

ERRORS = lines(r"""
echo *.nomatch; echo after
math 1 / 0
math 1 +
math nonsense
cd /nonexistent
cd /nonexistent; and echo no; or echo yes
cat </nonexistent/file; echo $status
echo x >/nonexistent/file; echo $status
test 1 -eq a; echo $status
set -q; echo $status
set 1x y; echo $status
kill -0 99999999
source /nonexistent/script; echo $status
no_such_a | cat; echo $status
no_such_c; or echo rescued
echo (no_such_d); echo after
string match; echo $status
string replace -r '(' x y; echo $status
builtin nosuch; echo $status
functions nosuch; echo $status
""")


def scripts(shell: Shell) -> Iterator[Entry]:
    yield from SCRIPTS
    yield 'for i in a \'b c\' "d\n e"\n\techo "<$i>"\nend'
    yield "\n\n# leading comment\n\necho body\n# trailing comment\n"


def expansions(shell: Shell) -> Iterator[Entry]:
    yield from EXPANSIONS


def errors(shell: Shell) -> Iterator[Entry]:
    """What fish itself complains about."""
    yield from messages(SYNTAX_ERRORS)
    yield from messages(["echo a\n)", "echo b\n(", "echo one\necho two\nif true\n", "cat <<E\nx\nE"])
    yield from messages(ERRORS)
    yield f"no_such_command_{'x' * 200}", Compare.MESSAGES


def jobs(shell: Shell) -> Iterator[Entry]:
    yield "sleep 0.01 &", Compare.OUTPUT, 1
    yield "sleep 0.01 & echo started", Compare.OUTPUT, 1
    yield "sleep 0.02 & wait; echo waited", Compare.OUTPUT, 1
    yield "sleep 0.01 & sleep 0.02 & wait", Compare.OUTPUT, 2
    yield "sleep 5 & sleep 0.1; kill $last_pid; wait $last_pid; echo $status", Compare.OUTPUT, 1
    yield "sh -c 'sleep 0.05; echo late' & wait", Compare.OUTPUT, 1
    yield "&", Compare.STATUS


KINDS = (scripts, expansions, errors, jobs)
