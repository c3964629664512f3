package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// runRoot executes the command line. The argument root is the command gauntlet with its
// subcommands. For wrong usage, such as an unknown flag, it returns an error of one line.
//
// If a command ignores that a write to standard output failed, runRoot returns that error. After the
// end of ctx, every error is an unfinishedError: the user interrupted the command.
func runRoot(ctx context.Context, root *cobra.Command) error {
	out := &standardOutput{to: root.OutOrStdout()}
	root.SetOut(out)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	refuseBadUsage(root)
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return out.err
	case ctx.Err() != nil:
		return &unfinishedError{err}
	}
	return groupError(cmd, err)
}

// These patterns match errors of package cobra about several flags. The group is a list of flags.
var (
	exclusivePattern = regexp.MustCompile(`^if any flags in the group \[[^]]*\] are set none of the others can be; \[([^]]*)\] were all set$`)
	requiredPattern  = regexp.MustCompile(`^required flag\(s\) "([^"]*)"`)
)

// groupError converts an error of package cobra about several flags to a message in this project's
// style. It returns any other error unchanged.
func groupError(cmd *cobra.Command, err error) error {
	if match := exclusivePattern.FindStringSubmatch(err.Error()); match != nil {
		return fmt.Errorf("found --%s; use at most one of these flags", strings.Join(strings.Fields(match[1]), " and --"))
	}
	if match := requiredPattern.FindStringSubmatch(err.Error()); match != nil {
		kind := "value"
		if flag := cmd.Flags().Lookup(match[1]); flag != nil {
			kind, _ = pflag.UnquoteUsage(flag)
		}
		return fmt.Errorf("--%s: found no value; expected one, such as --%[1]s=%s", match[1], strings.ToUpper(kind))
	}
	return err
}

// escapeArguments replaces line breaks in a message by \n if an argument of the command line has
// them. Such an argument is, for example, the path of a file, or an unknown flag. Each message then
// has one line.
func escapeArguments(text string, args []string) string {
	for _, arg := range args {
		flag, value, _ := strings.Cut(arg, "=")
		for _, part := range []string{arg, flag, value} {
			if strings.Contains(part, "\n") && strings.TrimSpace(part) != "" {
				text = strings.ReplaceAll(text, part, strings.ReplaceAll(part, "\n", `\n`))
			}
		}
	}
	return text
}

// These are lengths of words in error messages, in bytes. Of a word that is longer than wordMax,
// clipWords keeps the beginning and the end.
const (
	wordMax   = 600
	wordStart = 400
	wordEnd   = 100
)

// clipWords cuts the middle out of each very long word of a message. Such a word is, for example, a
// file name with thousands of characters.
func clipWords(text string) string {
	if len(text) <= wordMax {
		return text
	}
	return longWord.ReplaceAllStringFunc(text, func(word string) string {
		start := strings.ToValidUTF8(word[:wordStart], "")
		end := strings.ToValidUTF8(word[len(word)-wordEnd:], "")
		return fmt.Sprintf("%s…(%d bytes)…%s", start, len(word)-len(start)-len(end), end)
	})
}

// longWord matches a word that is longer than wordMax.
var longWord = regexp.MustCompile(fmt.Sprintf(`\S{%d}\S*`, wordMax+1))

// standardOutput writes to the standard output of gauntlet. It keeps the error of the first failed
// write.
type standardOutput struct {
	to  io.Writer
	err error
}

// Write writes to standard output. It returns an unfinishedError if the write fails.
func (o *standardOutput) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		if path := new(fs.PathError); errors.As(err, &path) {
			err = path.Err
		}
		err = &unfinishedError{fmt.Errorf("writing to standard output: %w", err)}
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// fileOf returns the file to which out writes, for example to find the width of a terminal. The
// bool is false if out does not write to a file.
func fileOf(out io.Writer) (*os.File, bool) {
	if standard, ok := out.(*standardOutput); ok {
		out = standard.to
	}
	file, ok := out.(*os.File)
	return file, ok
}

// refuseBadUsage makes a command and its subcommands report wrong usage in an error of one line.
// Wrong usage is an unknown command or flag, or a wrong number of arguments.
func refuseBadUsage(cmd *cobra.Command) {
	hasOnlyCommands := cmd.HasAvailableSubCommands() && !cmd.Runnable()
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if args := cmd.Flags().Args(); len(args) > 0 && hasOnlyCommands { // the flag is that of an unknown command
			return unknownCommand(cmd, args[0])
		}
		return flagError(cmd, err)
	})
	switch {
	case cmd.Name() == "help":
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = unknownCommand(found, rest[0])
			}
			return err
		}
	case hasOnlyCommands:
		refuseUnknownCommands(cmd)
	default:
		cmd.Args = countArguments(cmd.Args)
	}
	for _, sub := range cmd.Commands() {
		refuseBadUsage(sub)
	}
}

// refuseUnknownCommands makes a command that has only subcommands refuse all other arguments.
// Without arguments, the root command prints its help. Any other command without arguments returns
// an error.
func refuseUnknownCommands(cmd *cobra.Command) {
	cmd.DisableFlagsInUseLine = true
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.HasParent() {
			return fmt.Errorf("%s: found no command; expected one of %s", commandWords(cmd), strings.Join(commandNames(cmd), ", "))
		}
		if version, err := cmd.Flags().GetBool("version"); version && err == nil {
			return writeText(cmd, "gauntlet "+revision+"\n")
		}
		return cmd.Help()
	}
}

// These are the greatest values of flags that say how many runs to make, and how many scenarios to
// generate. A command plans all of them before the first run, and plans need memory.
const (
	runsMax      = 1_000
	generatedMax = 10_000
)

// checkCount returns an error if the value of a flag, such as --pairs, is not between least and
// most.
func checkCount(flag string, found, least, most int) error {
	if found < least || found > most {
		return fmt.Errorf("--%s=%d: expected %d to %d", flag, found, least, most)
	}
	return nil
}

// checkBudget returns an error if the value of the flag --budget is negative.
func checkBudget(budget time.Duration) error {
	if budget < 0 {
		return fmt.Errorf("--budget=%s: expected a duration that is not negative", budget)
	}
	return nil
}

// unknownCommand returns the error for a subcommand that the command parent does not have.
func unknownCommand(parent *cobra.Command, found string) error {
	advice := nearest.Suggestion(found, commandNames(parent))
	switch names := commandNames(parent); {
	case slices.Contains(names, found): // after --, cobra looks for no command
		return fmt.Errorf("found the command %q after --; omit --", found)
	case parent.HasParent() && len(names) > 0:
		advice = "; expected one of " + strings.Join(names, ", ") + advice
	case parent.HasParent():
		advice = fmt.Sprintf("; \"%s\" has no commands", parent.CommandPath())
	case advice == "":
		advice = fmt.Sprintf("; \"%s --help\" lists the commands", parent.CommandPath())
	}
	return fmt.Errorf("unknown command %q for %q%s", found, parent.CommandPath(), advice)
}

// commandWords returns the words of a command after "gauntlet", such as "sweep crash". Errors begin
// with these words.
func commandWords(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// commandNames returns the names of those subcommands that the help text of a command lists. Errors
// about an unknown command suggest them.
func commandNames(parent *cobra.Command) []string {
	var names []string
	for _, sub := range parent.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// countArguments returns a function that validates the arguments of a command. The function
// refuses empty arguments, and arguments for which the argument check returns an error. Its own
// error says which arguments were found, and which are expected.
func countArguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case slices.Contains(args, "") && !cmd.Hidden: // gauntlet itself may give a hidden command an empty argument
		case check == nil || check(cmd, args) == nil:
			return nil
		}
		var quoted []string
		for _, arg := range args {
			quoted = append(quoted, fmt.Sprintf("%q", arg))
		}
		found, suggestion := "", ""
		switch empty := slices.Index(args, ""); {
		case empty >= 0:
			found = fmt.Sprintf("an empty argument in position %d", empty+1)
		case len(args) == 0:
			found = "no argument"
		case len(args) == 1:
			found, suggestion = "the argument "+quoted[0], nearest.Suggestion(args[0], cmd.ValidArgs)
		default:
			found = fmt.Sprintf("%d arguments (%s)", len(args), strings.Join(quoted, ", "))
		}
		return fmt.Errorf("%s: found %s; expected %s%s", commandWords(cmd), found, expectedArguments(cmd), suggestion)
	}
}

// expectedArguments returns the arguments that a command expects, as in its usage line, such as
// "RUNDIR…". For a command without arguments, it returns "none".
func expectedArguments(cmd *cobra.Command) string {
	words := strings.Fields(cmd.Use)[1:]
	words = slices.DeleteFunc(words, func(word string) bool { return strings.HasPrefix(word, "-") })
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, " ")
}

// flagError converts an error of package pflag to a message in this project's style. The message
// names the flag, the value that was found, and the expected value.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.Is(err, errTwice), errors.Is(err, errEmpty), errors.Is(err, errOctal):
		errors.As(err, &invalid)
		return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, errors.Unwrap(invalid))
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s: found %q; %s", invalid.GetFlag().Name, invalid.GetValue(), expectedValue(invalid))
	case errors.As(err, &missing):
		return fmt.Errorf("--%s: found no value; expected %s", missing.GetFlag().Name, cmp.Or(valueWords(missing.GetFlag()), "one of "+strings.ReplaceAll(missing.GetFlag().Value.Type(), "|", ", ")))
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	}
	return fmt.Errorf("%w; \"%s --help\" lists the flags", err, cmd.CommandPath())
}

// unknownFlag returns the error about a flag that a command does not have. A flag with one hyphen, such as -dry-run,
// often is one with two.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	name, hyphens := unknown.GetSpecifiedName(), "--"
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		name, _, _ = strings.Cut(letters, "=")
		hyphens = "-"
	}
	var names []string
	similar := ""
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
		if hyphens == "-" && len(name) > 1 && f.Shorthand != "" && f.Name == f.Shorthand+name { // such as -help, which begins with the flag -h
			similar, name = f.Name, f.Name
		}
	})
	if similar == "" && (hyphens == "--" || len(name) > 1) {
		similar = nearest.Name(name, names)
	}
	if similar != "" {
		return fmt.Errorf("unknown flag: %s%s for %q; did you mean --%s?", hyphens, name, cmd.CommandPath(), similar)
	}
	return fmt.Errorf("unknown flag: %s%s for %q; \"%s --help\" lists the flags", hyphens, name, cmd.CommandPath(), cmd.CommandPath())
}

// expectedValue returns a text that says which values a flag accepts. For a flag type of this
// project, it takes the text from the error that the type's method Set returned.
func expectedValue(invalid *pflag.InvalidValueError) string {
	if invalid.GetFlag().Value.Type() == "duration" {
		return "expected " + scenario.ExpectedDuration(invalid.GetValue())
	}
	words := errors.Unwrap(invalid).Error()
	if _, expected, ok := strings.Cut(words, "; expected "); ok {
		return "expected " + expected // the caller has already named the value that was found
	}
	if errors.Is(invalid, strconv.ErrRange) && invalid.GetFlag().Value.Type() == "int" {
		return fmt.Sprintf("expected a whole number of at most %d digits", inputfile.DigitsMax)
	}
	if words := valueWords(invalid.GetFlag()); words != "" {
		return "expected " + words
	}
	return words
}

// valueWords returns a text that says which values a flag of a standard type accepts. It returns
// "" for a type of this project.
func valueWords(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "uint64":
		return "a whole number from 0 to 18446744073709551615"
	case "int":
		return "a whole number"
	case "duration":
		return scenario.ExpectedDuration("")
	case "bool":
		return "true or false"
	case "stringToString":
		return "KEY=VALUE"
	case "string", "stringArray":
		return "one, such as --" + flag.Name + "=VALUE"
	case "stringSlice":
		return "one or more, separated by commas, with each quotation mark closed"
	}
	return ""
}
