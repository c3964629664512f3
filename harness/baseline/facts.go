package baseline

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Facts are statements about a run, such as that a Service has the type ClusterIP. A key names an
// object or one of its fields, such as "services gauntlet/web spec/type".
//
// If the key names a field, the value is the content of the field. If the key names an object, the
// value is the number of such objects. It may also contain counts such as "2 created, 1 deleted, 0
// lost". The value [Any] matches every value.
type Facts map[string]string

// UnmarshalJSON decodes facts. The error for a value that is not a text names the key.
func (f *Facts) UnmarshalJSON(text []byte) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	*f = make(Facts, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		var value string
		if err := json.Unmarshal(values[key], &value); err != nil {
			return fmt.Errorf("entry %q: found %s; expected a text in double quotes", key, values[key])
		}
		(*f)[key] = value
	}
	return nil
}

// Any is the value of a fact that differs between runs, or that the user ignores. It matches
// every value.
const Any = "*"

// random matches text that differs from run to run: a UID, a time or an IP address.
var random = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-|\d{4}-\d\d-\d\dT\d\d:\d\d|\b\d+\.\d+\.\d+\.\d+\b`)

// HasGeneratedName reports whether a key stands for objects with generated names. Such a key has the
// common part of the names; see [history.Object.StableName].
func HasGeneratedName(key string) bool { return strings.HasSuffix(key, "*") }

// add adds a fact, such as the value of a field. If the value contains a UID, a time or an IP
// address, add stores [Any] instead. If the key contains one, add does nothing.
func (f Facts) add(key, value string) {
	switch {
	case random.MatchString(key):
	case random.MatchString(value):
		f[key] = Any
	default:
		f[key] = value
	}
}

// Random returns how many facts have the value [Any], because they differ between runs.
func (f Facts) Random() int {
	n := 0
	for _, value := range f {
		if value == Any {
			n++
		}
	}
	return n
}

// Agreed combines the facts of several runs. A fact keeps its value if all runs have it with
// this value; otherwise the value becomes [Any]. The list must contain at least one run.
func Agreed(runs []Facts) Facts {
	common := maps.Clone(runs[0])
	for _, facts := range runs[1:] {
		for key, value := range facts {
			if common[key] != value {
				common[key] = Any
			}
		}
		for key := range common {
			if _, ok := facts[key]; !ok {
				common[key] = Any
			}
		}
	}
	return common
}

// Differences returns a sorted list of texts. Each text says how a fact of another run (the
// parameter found) differs from the same fact in f. A fact with the value [Any] never differs. If
// a whole object is missing or additional, Differences does not list its fields.
func (f Facts) Differences(found Facts) []string {
	var all []string
	for key, want := range f {
		got, ok := found[key]
		switch {
		case want == Any || ok && (got == want || got == Any):
		case !ok && found.knows(key):
			all = append(all, fmt.Sprintf("%s: found none; expected %q", key, want))
		case ok:
			all = append(all, fmt.Sprintf("%s: found %q; expected %q", key, got, want))
		}
	}
	for key, got := range found {
		if _, ok := f[key]; !ok && got != Any && f.knows(key) {
			all = append(all, fmt.Sprintf("%s: found %q; expected none", key, got))
		}
	}
	slices.Sort(all)
	return all
}

// knows reports whether f has a fact for the object in a key, such as "services default/web
// spec/type". For a key without a field, it always returns true, because such a key is about a
// whole object. The method Differences calls it to leave out the fields of an object that is
// missing as a whole.
func (f Facts) knows(key string) bool {
	parts := strings.SplitN(key, " ", 3)
	if len(parts) < 3 {
		return true
	}
	_, ok := f[parts[0]+" "+parts[1]]
	return ok
}
