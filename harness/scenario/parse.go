package scenario

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// SizeLimit is the maximum size of a scenario file in bytes. [Parse] does not parse a larger file.
const SizeLimit = 256 << 10

// unreadableMax is a number of values that the decoder cannot read. If a file has more, its other
// values are not validated, because the validation would need minutes.
const unreadableMax = 1_000

// mistakesMax is the maximum number of errors that the validator records. It compares each new error
// with all of them, so that many more would need minutes.
const mistakesMax = 1_000

// Load reads and validates the scenario file at path. It passes the content of the file, and the
// functions in the argument further, to [Parse].
func Load(path string, further ...func(*Scenario) error) (*Scenario, error) {
	data, err := read(path, "a scenario")
	if errors.Is(err, inputfile.ErrTooLarge) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("reading the scenario: %w", err)
	}
	return Parse(path, data, further...)
}

// read returns the content of a YAML file of at most [SizeLimit] bytes. The argument expected says what the file
// should be; the error for a file that a run writes names it.
func read(path, expected string) ([]byte, error) {
	data, err := inputfile.ReadAtMost(path, SizeLimit)
	start := data
	if errors.Is(err, inputfile.ErrTooLarge) {
		start = inputfile.Start(path)
	}
	if mistaken := inputfile.MistakenRunFile(start, expected); mistaken != nil {
		return nil, fmt.Errorf("%s: %w", path, mistaken)
	}
	return data, err
}

// Parse returns the scenario in a YAML text. It sets the defaults of omitted fields and validates
// all fields. The error has one line for each mistake in the file.
//
// The argument file is the name of the file for error messages. The argument further has
// functions that check what this package does not know, such as the parameters of faults. Parse
// calls them even if the scenario is invalid; see [Scenario.Invalid].
func Parse(file string, data []byte, further ...func(*Scenario) error) (*Scenario, error) {
	src := &source{file: file}
	if len(data) > SizeLimit {
		return nil, src.errorAt(position{}, "", "found a file of %d bytes; expected at most %d bytes", len(data), SizeLimit)
	}
	if err := inputfile.MistakenRunFile(data, "a scenario"); err != nil { // of standard input
		return nil, src.errorAt(position{}, "", "%w", err)
	}
	root, err := parseNode(src, data)
	if err != nil {
		return nil, err
	}
	src.root = root
	if isSubjectFile(root) {
		return nil, src.errorAt(position{}, "", "found a subject file; expected a scenario; pass the subject file with the flag --subject")
	}
	if top, _ := root.value.(mapping); isBaseline(top) {
		return nil, src.errorAt(position{}, "", "found a baseline; expected a scenario; pass the baseline with the flag --baseline")
	}
	if fields, unknown := notScenario(root); unknown {
		return nil, src.errorAt(position{}, "", "found a file with %s; expected a scenario, which has name and workload", fields)
	}
	if err := JoinErrors(src.misplaced(root)...); err != nil {
		return nil, err
	}
	s := &Scenario{source: src}
	unreadable := (decoder{source: src}).decode(root, reflect.ValueOf(s).Elem(), "")
	earlier := flatten([]error{unreadable})
	if _, ok := root.value.(mapping); !ok || len(earlier) > unreadableMax {
		return nil, unreadable
	}
	s.Description = strings.Join(strings.Fields(s.Description), " ")
	s.renameChecks()
	s.complete()
	errs := []error{unreadable, s.validate(earlier...)}
	if src.mistakes = flatten(errs); !s.Invalid("operator.kinds") { // faults may name the kinds
		for _, check := range further {
			errs = append(errs, check(s))
		}
	}
	if err := JoinErrors(src.withoutTemplates(flatten(errs))...); err != nil {
		return nil, err
	}
	// A run writes this text to scenario.yaml, and adds the seed.
	if size := len(s.encode()) + len("seed: 18446744073709551615\n"); size > SizeLimit && s.Seed == 0 {
		return nil, src.errorAt(position{}, "", "found a scenario of %d bytes, complete with defaults; expected at most %d bytes", size, SizeLimit)
	}
	return s, nil
}

// misplaced returns an error for each step and each fault whose parameters are not below its name. Such
// parameters would otherwise give an error for each of them, and others for the missing ones.
func (s *source) misplaced(root *node) (errs []error) {
	top, _ := root.value.(mapping)
	faultFields := slices.Collect(maps.Keys(new(Fault).options()))
	for _, list := range []struct {
		name   string
		plain  []string // the fields of an item that have no parameters
		others []string // further fields that an item may have
	}{{"workload", []string{stepAfter}, append(operationNames(), stepAwait)}, {"faults", faultFields, nil}} {
		value := top.field(list.name)
		if value == nil {
			continue
		}
		items, _ := value.value.(sequence)
		for i, item := range items {
			fields, _ := item.value.(mapping)
			if err := s.misplacedIn(fields, fmt.Sprintf("%s[%d]", list.name, i), list.plain, list.others); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// misplacedIn returns an error if a step or a fault has a name without parameters, and unknown fields beside
// it. It also returns one for a fault with the name as the value of a field, such as type. The argument path
// is the place of the step or fault in the file.
func (s *source) misplacedIn(fields mapping, path string, plain, others []string) error {
	named := slices.ContainsFunc(fields, func(e entry) bool { // a field has parameters below its name
		_, isMapping := e.value.value.(mapping)
		return isMapping && !slices.Contains(plain, e.name) && !slices.Contains([]string{"params", "parameters", "args", "with", "spec"}, e.name)
	})
	empty := slices.IndexFunc(fields, func(e entry) bool { return e.value.value == nil && !slices.Contains(plain, e.name) })
	for _, field := range fields {
		text, isText := field.value.value.(string)
		switch {
		case slices.Contains(plain, field.name), slices.Contains(others, field.name):
		case empty >= 0 && field.name != fields[empty].name:
			return s.errorAt(field.position, path, "found the field %s beside %s, which has no parameters; expected the parameters indented below %s", field.name, fields[empty].name, fields[empty].name)
		case slices.Contains([]string{"type", "name", "fault", "operation", "action", "op"}, field.name) && isText && empty < 0 && !named:
			return s.errorAt(field.position, path, "found the field %s with the value %.60q; expected the name as the key, and the parameters below it, such as %.60s: {…}", field.name, text, text)
		}
	}
	return nil
}

// isSubjectFile reports whether a YAML file describes a program under test instead of a scenario.
// Both have the fields subject and operator, but only a subject file names a program.
func isSubjectFile(root *node) bool {
	fields, _ := root.value.(mapping)
	described := fields.field("subject")
	if described == nil || fields.field("workload") != nil {
		return false
	}
	subject, _ := described.value.(mapping)
	return subject.field("module") != nil || subject.field("exec") != nil
}

// isBaseline reports whether the fields of a YAML file are those of a baseline. A baseline says what runs
// without faults have in common.
func isBaseline(fields mapping) bool {
	return fields.field("effects") != nil && fields.field("end") != nil
}

// notScenario reports whether a YAML file is not a scenario at all, such as a manifest of Kubernetes. It
// has unknown fields, and no field that every scenario has. notScenario also returns the unknown
// fields, as text.
func notScenario(root *node) (string, bool) {
	fields, _ := root.value.(mapping)
	known := fieldNames(reflect.TypeFor[Scenario]())
	var unknown []string
	for _, field := range fields {
		switch field.name {
		case "name", "workload", "externalWorkload":
			return "", false
		}
		if slices.Contains(known, field.name) {
			continue
		}
		if similar(field.name, known) != "" {
			return "", false
		}
		unknown = append(unknown, strconv.Quote(field.name))
	}
	return nearest.List(unknown[:min(len(unknown), unknownMax)], "and"), len(unknown) > 0
}

// unknownMax is the maximum number of fields in the error about a file that is no scenario.
const unknownMax = 5

// Validate returns the errors of all fields that are out of bounds or contradict another field. [Parse]
// returns only valid scenarios, but a program may have changed one.
func (s *Scenario) Validate() error { return s.validate() }

// Marshal returns the scenario as YAML. From this YAML, [Parse] reads an equal scenario. Marshal
// returns an error if the scenario is invalid.
func (s *Scenario) Marshal() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("writing scenario %q: %w", s.Name, err)
	}
	return s.encode(), nil
}

// encode returns the scenario as YAML.
func (s *Scenario) encode() []byte {
	return write(encodeFields(reflect.ValueOf(s).Elem()))
}
