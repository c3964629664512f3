package timeline

import (
	"encoding/json"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// decodeGeneric reads the fields that objects of many kinds have. It ignores a field with
// an unexpected type, because a custom resource may use the name for something else.
func (s *state) decodeGeneric(o *history.Object) {
	var body struct{ Spec, Status json.RawMessage }
	_ = json.Unmarshal(o.Body, &body)
	spec, status := fieldsOf(body.Spec), fieldsOf(body.Status)
	s.desired = number(spec["replicas"])
	s.replicas, s.readyReplicas, s.available = number(status["replicas"]), number(status["readyReplicas"]), number(status["availableReplicas"])
	_ = json.Unmarshal(status["phase"], &s.phase)
	var conditions []struct{ Type, Status string }
	_ = json.Unmarshal(status["conditions"], &conditions)
	for _, c := range conditions {
		s.conditions = append(s.conditions, c.Type+"="+c.Status)
	}
}

// fieldsOf returns the fields of a JSON object; none if the JSON text is no object.
func fieldsOf(raw json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields)
	return fields
}

// number returns a JSON integer, or nil if the JSON text is none.
func number(raw json.RawMessage) *int {
	var n *int
	if json.Unmarshal(raw, &n) != nil {
		return nil
	}
	return n
}
