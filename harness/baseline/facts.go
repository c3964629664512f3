package baseline

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Facts are statements about a run. A key is an object, or a field of an object, such as
// "services gauntlet/web spec/type". The value is [Any] if runs need not agree on it.
type Facts map[string]string

// Any is the value of a fact that differs between runs.
const Any = "*"

// random matches values that differ from run to run: UIDs, times and addresses.
var random = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-|\d{4}-\d\d-\d\dT\d\d:\d\d|\b\d+\.\d+\.\d+\.\d+\b`)

// add adds a fact. A value that is random becomes [Any]. A fact with a random key is left out.
func (f Facts) add(key, value string) {
	switch {
	case random.MatchString(key):
	case random.MatchString(value):
		f[key] = Any
	default:
		f[key] = value
	}
}

// Random returns the number of facts with the value [Any].
func (f Facts) Random() int {
	n := 0
	for _, value := range f {
		if value == Any {
			n++
		}
	}
	return n
}

// Agreed returns the facts on which all runs agree. The values of the others become [Any]. It
// needs the facts of at least one run.
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

// Differences compares the facts of another run with these facts. It returns the differences in
// words, sorted. For an object that is missing or additional, it leaves out the fields.
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

// knows reports whether the key is that of an object, or that of a field of an object that exists.
func (f Facts) knows(key string) bool {
	parts := strings.SplitN(key, " ", 3)
	if len(parts) < 3 {
		return true
	}
	_, ok := f[parts[0]+" "+parts[1]]
	return ok
}
