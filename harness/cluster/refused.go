package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// RefusedError is an error about an object of the user that the API server refuses as invalid. The user
// must correct the object.
type RefusedError struct {
	Object *unstructured.Unstructured
	Place  string // the object's file and document; empty if unknown
	Err    error  // the error of the API server
}

// CreateError returns the error of a command that could not create an object, with the object's kind and
// name. It returns a [RefusedError] if err says that the object is invalid.
func CreateError(o *unstructured.Unstructured, err error) error {
	if meta.IsNoMatchError(err) {
		err = fmt.Errorf("apiVersion: found %.80q; expected a version of the kind that the API server serves", o.GetAPIVersion())
	} else if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		return fmt.Errorf("creating %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return &RefusedError{Object: o, Err: err}
}

func (e *RefusedError) Unwrap() error { return e.Err }
func (e *RefusedError) Error() string {
	text := fmt.Sprintf("%s %s: %s", e.Object.GetKind(), e.Object.GetName(), e.reason())
	if e.Place != "" {
		text = e.Place + ": " + text
	}
	return text
}

// reason returns the fields that the API server refuses, each with the reason. Without such fields, it
// returns the whole error of the API server.
func (e *RefusedError) reason() string {
	return cmp.Or(InvalidFields(e.Err), inputfile.JSONReason(e.Err))
}

// InvalidFields returns the fields of an object that the API server refuses, each with the reason. It returns
// "" if the error names no fields.
func InvalidFields(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	var reasons []string
	for _, cause := range status.Status().Details.Causes {
		reasons = append(reasons, strings.TrimPrefix(cause.Field+": "+shortValue(cause.Message), ": "))
	}
	return strings.Join(reasons, "; ")
}

// valuePattern matches the text before a value in a reason of the API server.
var valuePattern = regexp.MustCompile(`^(?:Invalid|Unsupported|Duplicate) value: `)

// shortValue returns a reason of the API server whose value has at most 60 characters.
func shortValue(reason string) string {
	const longest = 60
	start := len(valuePattern.FindString(reason))
	var value json.RawMessage
	if start == 0 || json.NewDecoder(strings.NewReader(reason[start:])).Decode(&value) != nil || len(value) <= longest {
		return reason
	}
	return reason[:start] + strings.ToValidUTF8(string(value[:longest]), "") + "…" + reason[start+len(value):]
}
