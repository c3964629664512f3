package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Difference is one difference between a recorded answer and the answer of the replay.
type Difference struct {
	// Path is the field that differs, such as ".spec.containers[].image", "(code)" for the HTTP
	// status or "(commits)" for whether the request committed something.
	Path string
	// Recorded and Replayed are the values of the field; empty if the field is missing.
	Recorded, Replayed string
	// Reason is the reason for the difference, if it is known; see [explained].
	Reason string
}

// times lists the fields that the API server sets to its own time. For example, a binding sets the
// lastTransitionTime of the condition PodScheduled.
var times = []string{"metadata.creationTimestamp", "metadata.deletionTimestamp", "status.conditions[].lastTransitionTime"}

// comparison compares a recorded answer with the answer of the replay.
type comparison struct {
	recorded    *Request
	moved       map[string]string // see replayer.moved
	differences []Difference
}

// add adds a difference to c.differences, with its reason if the reason is known.
func (c *comparison) add(path string, recorded, replayed any) {
	c.differences = append(c.differences, explain(c.recorded, Difference{Path: path, Recorded: text(recorded), Replayed: text(replayed)}))
}

// text returns a value as JSON, or "" for nil.
func text(value any) string {
	if value == nil {
		return ""
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(encoded)
}

// compare compares two JSON values, and adds their differences to c.differences. The argument path
// is the path of the values in the answers.
func (c *comparison) compare(path string, recorded, replayed any) {
	switch recorded := recorded.(type) {
	case map[string]any:
		if other, ok := replayed.(map[string]any); ok && !aboutToDelete(path, recorded, other) {
			c.compareFields(path, recorded, other)
			return
		}
	case []any:
		if other, ok := replayed.([]any); ok && len(other) == len(recorded) {
			for i := range recorded {
				c.compare(path+"[]", recorded[i], other[i])
			}
			return
		}
	}
	if !c.same(path, recorded, replayed) {
		c.add(path, recorded, replayed)
	}
}

// aboutToDelete reports whether only kube-apiserver has set an object's grace period to 0. The object
// terminates, and the API server of the replay has not set its grace period to 0. The arguments recorded and replayed are the metadata
// of the object if path ends with ".metadata"; otherwise, the result is false.
func aboutToDelete(path string, recorded, replayed map[string]any) bool {
	const field = "deletionGracePeriodSeconds"
	return strings.HasSuffix(path, ".metadata") && text(recorded[field]) == "0" && text(replayed[field]) != "0" && replayed[field] != nil
}

// compareFields compares the fields of two JSON objects.
func (c *comparison) compareFields(path string, recorded, replayed map[string]any) {
	fields := slices.AppendSeq(slices.Collect(maps.Keys(recorded)), maps.Keys(replayed))
	slices.Sort(fields)
	for _, field := range slices.Compact(fields) {
		c.compare(path+"."+field, recorded[field], replayed[field])
	}
}

// same reports whether two values are equal. Times that are nearly equal count as equal, and so do
// a recorded resourceVersion and the one that the object got in the replay instead.
func (c *comparison) same(path string, recorded, replayed any) bool {
	if text(recorded) == text(replayed) {
		return true
	}
	a, _ := recorded.(string)
	b, _ := replayed.(string)
	switch {
	case a == "" || b == "":
		return false
	case strings.HasSuffix(path, "metadata.resourceVersion"):
		return c.moved[a] == b
	case slices.ContainsFunc(times, func(field string) bool { return strings.HasSuffix(path, field) }):
		return c.sameTime(a, b)
	}
	return false
}

// sameTime reports whether two times that API servers have set differ by at most timeTolerance.
// They can differ by the duration of the recorded request, and are rounded to a second.
func (c *comparison) sameTime(recorded, replayed string) bool {
	a, errA := time.Parse(time.RFC3339, recorded)
	b, errB := time.Parse(time.RFC3339, replayed)
	return errA == nil && errB == nil && a.Sub(b).Abs() <= timeTolerance
}

// timeTolerance is the maximum difference between a recorded time and that of the replay. Requests of
// the recordings took up to seconds on a busy machine, and the replay waits a second for each new policy.
const timeTolerance = 5 * time.Second
