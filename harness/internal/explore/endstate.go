package explore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// EndState has the objects at the end of a run. A key is an object, or a field of an object, such as
// "services gauntlet/web spec.type". The value is the number of objects, or the value of the field.
// It is [anyValue] if the runs without faults do not agree on it.
//
// Objects are counted. The entries for fields are only of objects with a fixed name, and of the
// resources that the subject writes. Status and annotations are left out, because they depend on
// times. So are the fields of pods and of addresses of pods, which depend on the scheduler.
type EndState map[string]string

// anyValue is the value of an entry that a run need not have.
const anyValue = "*"

// lastCommits has the last committed version of each object that exists.
type lastCommits map[string]*history.Object

// observe reads the next commit.
func (l lastCommits) observe(c *history.Commit) {
	key := keyOf(c.Object.Ref)
	if c.Type == history.Deleted {
		delete(l, key)
		return
	}
	l[key] = &c.Object
}

// state returns the end state, with the fields of objects of the given resources.
func (l lastCommits) state(withFields []string) EndState {
	counts, state := map[string]int{}, EndState{}
	for _, o := range l {
		if history.IsBookkeeping(o.Resource) || o.IsLeaderLock() {
			continue
		}
		key := keyOf(history.Ref{Resource: o.Resource, Namespace: o.Namespace, Name: stableName(o)})
		counts[key]++
		if o.GenerateName == "" && slices.Contains(withFields, o.Resource) && !slices.Contains(scheduled, o.Resource) {
			state.addFields(key, o)
		}
	}
	for key, n := range counts {
		state[key] = fmt.Sprint(n)
	}
	return state
}

// scheduled are the resources whose fields depend on the scheduler.
var scheduled = []string{"pods", "endpoints", "endpointslices.discovery.k8s.io"}

// addFields adds the fields of an object to the state.
func (s EndState) addFields(key string, o *history.Object) {
	for name, value := range o.Labels {
		s.add(key+" label "+name, value)
	}
	for _, owner := range o.Owners {
		s.add(fmt.Sprintf("%s owner %s/%s", key, owner.Kind, owner.Name), "present")
	}
	var body map[string]any
	if json.Unmarshal(o.Body, &body) != nil {
		return // a Secret has no body in the history
	}
	delete(body, "status")
	s.addValue(key, body)
}

// addValue adds a field, or the fields in it.
func (s EndState) addValue(path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			separator := "."
			if !strings.Contains(path[strings.LastIndex(path, "/"):], " ") {
				separator = " " // between the object and its field
			}
			s.addValue(path+separator+name, inner)
		}
	case []any:
		for i, inner := range inOrder(v) {
			s.addValue(fmt.Sprintf("%s[%d]", path, i), inner)
		}
	default:
		s.add(path, fmt.Sprint(v))
	}
}

// inOrder sorts the items of a list, because a controller may build the list from a map.
func inOrder(items []any) []any {
	return slices.SortedFunc(slices.Values(items), func(a, b any) int {
		left, _ := json.Marshal(a) // the items come from JSON
		right, _ := json.Marshal(b)
		return bytes.Compare(left, right)
	})
}

// random matches values that differ from run to run: UIDs, times and addresses.
var random = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-|\d{4}-\d\d-\d\dT\d\d:\d\d|\b\d+\.\d+\.\d+\.\d+\b`)

// add adds an entry. A value that is random becomes [anyValue].
func (s EndState) add(key, value string) {
	if random.MatchString(value) {
		value = anyValue
	}
	s[key] = value
}

// agreed returns the entries on which all states agree. The others become [anyValue].
func agreed(states []EndState) EndState {
	common := maps.Clone(states[0])
	for _, s := range states[1:] {
		for key, value := range s {
			if common[key] != value {
				common[key] = anyValue
			}
		}
		for key := range common {
			if _, ok := s[key]; !ok {
				common[key] = anyValue
			}
		}
	}
	return common
}

// differences compares the end state of a run with that of the runs without faults. It returns the
// differences in words, sorted.
func (s EndState) differences(found EndState) []string {
	var all []string
	for key, want := range s {
		got, ok := found[key]
		switch {
		case want == anyValue || ok && got == want:
		case !ok:
			all = append(all, fmt.Sprintf("%s: found none; expected %q", key, want))
		default:
			all = append(all, fmt.Sprintf("%s: found %q; expected %q", key, got, want))
		}
	}
	for key, got := range found {
		if _, ok := s[key]; !ok && got != anyValue {
			all = append(all, fmt.Sprintf("%s: found %q; expected none", key, got))
		}
	}
	slices.Sort(all)
	return all
}
