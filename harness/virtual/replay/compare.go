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

// times lists the fields to which the API server assigns its own time. A binding sets the time of the
// condition PodScheduled.
var times = []string{"metadata.creationTimestamp", "metadata.deletionTimestamp", "status.conditions[].lastTransitionTime"}

// comparison compares two answers.
type comparison struct {
	recorded    *Request
	moved       map[string]string // see replayer.moved
	differences []Difference
}

// add adds a difference.
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

// compare adds the differences of two JSON values to the field differences.
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

// aboutToDelete reports whether the values are the metadata of an object whose grace period only
// kube-apiserver has ended.
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

// same reports whether two values are equal, or differ only in what the replay cannot repeat exactly.
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

// sameTime reports whether two times that API servers have set are nearly the same. They differ by the
// time that the recorded request took, and are rounded to a second.
func (c *comparison) sameTime(recorded, replayed string) bool {
	a, errA := time.Parse(time.RFC3339, recorded)
	b, errB := time.Parse(time.RFC3339, replayed)
	return errA == nil && errB == nil && a.Sub(b).Abs() <= timeTolerance
}

// timeTolerance is the maximum difference between a recorded time and that of the replay. Requests of
// the recordings took up to seconds on a busy machine, and the replay waits a second for each new policy.
const timeTolerance = 5 * time.Second
