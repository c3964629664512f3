package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	mutants "github.com/kube-gauntlet/gauntlet/harness/mutant/library"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
)

// These expressions match the mark that may follow the language of a code block with commands:
//
//	run            the test runs the block; each command must exit with status 0
//	run exit=N     as run, but the last command must exit with status N
//	skip="reason"  the test ignores the block
//
// TestCommandsParse checks a block without a mark, but no test runs it.
var (
	runInfo  = regexp.MustCompile(`^run(?: exit=(\d+))?$`)
	skipInfo = regexp.MustCompile(`^skip="(.{10,})"$`)
)

// runTimeout is the maximum duration of one command.
const runTimeout = 5 * time.Minute

// isCommands reports whether the language of a code block is sh or console.
func (b *block) isCommands() bool { return b.language == "sh" || b.language == "console" }

// commands returns the commands in a code block. The keys are their line numbers in the
// document.
//
// In a block with the language console, only lines that begin with "$ " are commands. The other
// lines are output.
func (b *block) commands() map[int]string {
	lines := map[int]string{}
	joined, first := "", 0
	for i, line := range b.lines {
		if b.language == "console" {
			rest, ok := strings.CutPrefix(line, "$ ")
			if !ok && joined == "" {
				continue
			}
			line = rest
			if !ok {
				line = b.lines[i]
			}
		}
		if joined == "" {
			first = b.line + 1 + i
		}
		if head, ok := strings.CutSuffix(line, `\`); ok {
			joined += head + " "
			continue
		}
		if text := strings.TrimSpace(joined + line); text != "" && !strings.HasPrefix(text, "#") {
			lines[first] = text
		}
		joined = ""
	}
	return lines
}

// TestCommandsParse checks every command in the documentation, but does not run it. The program,
// flags, make targets, files and scenarios in the command must exist.
func TestCommandsParse(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	p := &parser{makefile: string(makefile), seen: map[string]string{}}
	checked := 0
	for _, d := range readDocuments(t) {
		for _, b := range d.blocks {
			if !b.isCommands() || skipInfo.MatchString(b.info) {
				continue
			}
			if b.info != "" && !runInfo.MatchString(b.info) {
				t.Errorf("%s:%d: found %q after the language; expected run, run exit=N or skip=\"reason\"", d.path, b.line, b.info)
			}
			for line, text := range b.commands() {
				for _, command := range splitCommands(text) {
					if problem := p.problemOf(t, command); problem != "" {
						t.Errorf("%s:%d: %s: %s", d.path, line, strings.Join(command, " "), problem)
					}
					checked++
				}
			}
		}
	}
	if checked == 0 {
		t.Error("found no commands; expected some")
	}
}

// splitCommands splits a line of shell into commands, and each command into words. It interprets
// quotes, and omits redirections and comments.
func splitCommands(line string) [][]string {
	var all [][]string
	var words []string
	var word strings.Builder
	var quote rune
	begun, redirected := false, false
	endWord := func() {
		if begun && !redirected {
			words = append(words, word.String())
		}
		if begun {
			redirected = false
		}
		word.Reset()
		begun = false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			all = append(all, words)
		}
		words, redirected = nil, false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ' || r == '\t':
			endWord()
		case r == '#' && !begun:
			endCommand()
			return all
		case r == '|' || r == ';' || r == '&':
			endCommand()
		case r == '>' || r == '<':
			if w := word.String(); w == "2" || w == "1" {
				word.Reset()
				begun = false
			}
			endWord()
			redirected = true
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	endCommand()
	return all
}

// parser checks the commands in the documentation without running them.
type parser struct {
	makefile string
	seen     map[string]string // key: command line of gauntlet, value: its help text
}

// external lists programs that do not belong to this project. The test does not check their
// arguments.
var external = []string{
	"apt-get", "cat", "cd", "cp", "docker", "echo", "export", "git", "gofmt", "grep", "head", "helm", "jq", "kind", "kubectl",
	"ls", "mkdir", "sed", "sudo", "tail", "wc",
}

// assignment matches the beginning of NAME=VALUE. This may be an environment variable before a
// command, or a variable of make.
var assignment = regexp.MustCompile(`^([A-Z_]+)=`)

// problemOf returns the reason why a command cannot run, such as an unknown program. It returns
// "" if it finds no problem.
func (p *parser) problemOf(t *testing.T, words []string) string {
	t.Helper()
	for len(words) > 0 && assignment.MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	if words[0] == "sudo" && len(words) > 1 {
		words = words[1:]
	}
	switch program, arguments := words[0], words[1:]; {
	case program == "bin/gauntlet" || program == "gauntlet":
		return p.problemOfGauntlet(t, arguments)
	case program == "make":
		return p.problemOfMake(t, arguments)
	case program == "go":
		return problemOfGo(arguments)
	case strings.HasPrefix(program, "harness/") || strings.HasPrefix(program, ".ci/"):
		return problemOfFile(program)
	case slices.Contains(external, program):
		return ""
	default:
		return fmt.Sprintf("unknown program %s: expected gauntlet, make, go or one of %s, or a block marked with skip=\"reason\"",
			program, strings.Join(external, ", "))
	}
}

var usageLine = regexp.MustCompile(`(?m)^Usage:\n  gauntlet ?(.*)$`)

// problemOfGauntlet checks a gauntlet command: it runs the same command line with --help. It
// returns a problem if a command, flag, scenario, mutant or file in the arguments does not
// exist. Otherwise it returns "".
func (p *parser) problemOfGauntlet(t *testing.T, arguments []string) string {
	t.Helper()
	key := strings.Join(arguments, "\x00")
	help, known := p.seen[key]
	if !known {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		output, err := exec.CommandContext(ctx, filepath.Join(root, "bin", "gauntlet"), append(slices.Clone(arguments), "--help")...).CombinedOutput()
		if err != nil {
			return fmt.Sprintf("%v: %s", err, output)
		}
		help = string(output)
		p.seen[key] = help
	}
	match := usageLine.FindStringSubmatch(help)
	if match == nil {
		return "found no line with the usage in the help of the command"
	}
	var positional []string
	for i, argument := range arguments {
		if isValue := i > 0 && arguments[i-1] == "-o"; !isValue && !strings.HasPrefix(argument, "-") {
			positional = append(positional, argument)
		}
	}
	var path []string
	for _, word := range strings.Fields(match[1]) {
		if !regexp.MustCompile(`^[a-z]+$`).MatchString(word) {
			break
		}
		path = append(path, word)
	}
	if len(positional) == 0 && len(arguments) == 0 || slices.Equal(arguments, []string{"--help"}) {
		return ""
	}
	if len(positional) < len(path) || !slices.Equal(positional[:len(path)], path) || strings.HasPrefix(match[1], "[command]") ||
		strings.HasSuffix(match[1], "[command]") && positional[0] != "help" {
		return "unknown command; expected a command that gauntlet --help lists"
	}
	return problemOfArguments(strings.Join(path, " "), positional[len(path):])
}

// problemOfArguments returns a problem if an argument of gauntlet names a scenario, mutant or
// file that does not exist. Otherwise it returns "".
func problemOfArguments(command string, arguments []string) string {
	for i, argument := range arguments {
		if isPlaceholder(argument) {
			continue
		}
		switch command {
		case "fleet explore": // NAME SCENARIO...
			if _, ok := library.Find(argument); !ok && i > 0 {
				return "found no built-in scenario " + argument
			}
		case "run", "compare", "nightly", "sweep crash", "explore", "baseline", "validate":
			if _, ok := library.Find(argument); ok {
				continue
			}
			if problem := problemOfFile(argument); problem != "" {
				return problem + ", and no built-in scenario with this name"
			}
		case "mutants":
			if !slices.Contains(mutants.IDs(), argument) {
				return "found no mutant with the ID " + argument
			}
		case "list", "explain", "down", "completion", "help", "fleet run", "fleet status", "fleet collect", "fleet delete", "fleet shrink", "fleet nightly":
		default:
			if problem := problemOfFile(argument); problem != "" {
				return problem
			}
		}
	}
	return ""
}

// isPlaceholder reports whether an argument stands for a user's file or for the output of an
// earlier command. Examples are my-scenario.yaml, RUNDIR, out/RUN and /tmp/seen.json.
func isPlaceholder(argument string) bool {
	base := filepath.Base(argument)
	return strings.HasPrefix(base, "my-") || strings.HasPrefix(argument, "out/") || strings.HasPrefix(argument, "bin/") ||
		strings.HasPrefix(argument, "/") || strings.Contains(argument, "$") || base == strings.ToUpper(base) && base != strings.ToLower(base)
}

// problemOfFile returns a problem if the project contains no file with this path. It returns ""
// if the file exists, and for placeholders.
func problemOfFile(path string) string {
	if isPlaceholder(path) {
		return ""
	}
	if _, err := os.Stat(filepath.Join(root, path)); err != nil {
		return "found no file " + path
	}
	return ""
}

// problemOfMake checks a make command with a dry run. It also requires that the Makefile defines
// the targets and variables in the arguments.
func (p *parser) problemOfMake(t *testing.T, arguments []string) string {
	t.Helper()
	var targets []string
	for _, argument := range arguments {
		match := assignment.FindStringSubmatch(argument)
		switch {
		case match != nil && !regexp.MustCompile(`(?m)^`+match[1]+` *\??:?=`).MatchString(p.makefile):
			return "the Makefile has no variable " + match[1]
		case match == nil && !strings.HasPrefix(argument, "-"):
			targets = append(targets, argument)
		}
	}
	for _, target := range targets {
		if !strings.Contains(p.makefile, "\n"+target+":") {
			return "the Makefile has no target " + target
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if output, err := exec.CommandContext(ctx, "make", append([]string{"-n", "-C", root}, arguments...)...).CombinedOutput(); err != nil {
		return fmt.Sprintf("make -n: %v: %.300s", err, output)
	}
	return ""
}

// problemOfGo returns a problem if a package directory in the arguments of a go command does not
// exist. Otherwise it returns "".
func problemOfGo(arguments []string) string {
	for _, argument := range arguments {
		if directory := strings.TrimSuffix(argument, "/..."); strings.HasPrefix(argument, "./") && directory != "." {
			if problem := problemOfFile(directory); problem != "" {
				return problem
			}
		}
	}
	return ""
}

// TestCommandsRun runs the code blocks with the mark run. The blocks of one document run in
// order, in one directory. The directory contains links to all files of the project except out/.
func TestCommandsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short, because it runs scenarios")
	}
	for _, d := range readDocuments(t) {
		if !slices.ContainsFunc(d.blocks, func(b block) bool { return b.isCommands() && runInfo.MatchString(b.info) }) {
			continue
		}
		t.Run(d.path, func(t *testing.T) {
			directory := workingDirectory(t)
			for _, b := range d.blocks {
				if match := runInfo.FindStringSubmatch(b.info); b.isCommands() && match != nil {
					runBlock(t, directory, d.path, &b, match[1])
				}
			}
		})
	}
}

// workingDirectory returns a temporary directory for commands. It contains symbolic links to all
// files and directories of the project except out/.
func workingDirectory(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != "out" {
			if err := os.Symlink(filepath.Join(top, name), filepath.Join(directory, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return directory
}

// runBlock runs the commands of a code block in order. The last command must exit with the given
// status. All other commands must exit with status 0.
func runBlock(t *testing.T, directory, path string, b *block, status string) {
	t.Helper()
	want, _ := strconv.Atoi(status) // 0 if status is ""
	commands := b.commands()
	var lines []int
	for line := range commands {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	for i, line := range lines {
		expected := 0
		if i == len(lines)-1 {
			expected = want
		}
		ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
		command := exec.CommandContext(ctx, "sh", "-c", commands[line])
		command.Dir = directory
		output, err := command.CombinedOutput()
		cancel()
		found := 0
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit):
			found = exit.ExitCode()
		case err != nil:
			t.Fatalf("%s:%d: %s: %v", path, line, commands[line], err)
		}
		if found != expected {
			t.Fatalf("%s:%d: %s: found exit status %d, expected %d\n%s", path, line, commands[line], found, expected, output)
		}
	}
}

func TestSplitCommands(t *testing.T) {
	for line, want := range map[string]string{
		`make chaos ARGS='burst --subject=upstream'`:      `[[make chaos ARGS=burst --subject=upstream]]`,
		`bin/gauntlet up >k 2>/dev/null && kubectl get x`: `[[bin/gauntlet up] [kubectl get x]]`,
		`gauntlet list # all of them`:                     `[[gauntlet list]]`,
		`gauntlet list checks | head -5`:                  `[[gauntlet list checks] [head -5]]`,
	} {
		if got := fmt.Sprint(splitCommands(line)); got != want {
			t.Errorf("%s: found %s, expected %s", line, got, want)
		}
	}
}
