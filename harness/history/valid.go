package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// verbs has the verbs of the Kubernetes API. For a URL path without a resource, the verb is an HTTP
// method.
var verbs = []string{
	"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "post", "put", "head", "options", "connect", "proxy",
}

// validate returns an error if the record has an unknown value, or lacks its object. The checks would
// otherwise ignore such a record.
func (r *Record) validate() error {
	switch {
	case r.Start != nil && r.Seq > 1:
		return errors.New("found a second start record; expected one at the beginning of the history")
	case r.Commit != nil:
		if err := oneOf("commit.type", r.Commit.Type, Added, Modified, Deleted); err != nil {
			return err
		}
		return r.Commit.Object.validate("commit.object")
	case r.Request != nil:
		return oneOf("request.verb", r.Request.Verb, verbs...)
	case r.Delivery != nil && r.Delivery.Held < 0:
		return negative("delivery.held", r.Delivery.Held)
	case r.Stall != nil && r.Stall.Duration < 0:
		return negative("stall.lasted", r.Stall.Duration)
	case r.Delivery != nil && r.Delivery.Type.HasObject():
		return r.Delivery.Object.validate("delivery.object")
	case r.Delivery != nil:
		return oneOf("delivery.type", r.Delivery.Type, Added, Modified, Deleted, Bookmark, Error)
	case r.Response != nil:
		return errors.Join(httpStatus("response.code", r.Response.Code), httpStatus("response.serverCode", r.Response.ServerCode))
	case r.Phase != nil:
		return oneOf("phase.name", r.Phase.Name, PhaseChaos, PhaseSettle, PhaseQuiet, PhaseEnd)
	case r.Fault != nil && r.Fault.Index < 0:
		return notAnIndex("fault.index", r.Fault.Index)
	case r.Fault != nil:
		return oneOf("fault.event", r.Fault.Event, FaultInjected, FaultFired, FaultHealed, FaultFailed)
	case r.Step != nil && r.Step.Index < 0:
		return notAnIndex("step.index", r.Step.Index)
	case r.Step != nil:
		return oneOf("step.event", r.Step.Event, StepBegun, StepLate, StepDone, StepFailed)
	case r.Process != nil:
		return oneOf("process.event", r.Process.Event, ProcessStarted, ProcessStopped, ProcessDied, ProcessPaused, ProcessResumed)
	}
	return nil
}

// validate returns an error if the object has no resource or no name. The argument field is the
// place of the object in the record, such as "commit.object".
func (o *Object) validate(field string) error {
	switch {
	case o.Resource == "":
		return fmt.Errorf("%s: found no resource; expected one, such as pods", field)
	case o.Name == "":
		return fmt.Errorf("%s: found no name of the object; expected one", field)
	}
	return nil
}

// oneOf returns an error if the value found in a field is none of the expected values.
func oneOf[T ~string](field string, found T, expected ...T) error {
	if slices.Contains(expected, found) {
		return nil
	}
	names := make([]string, len(expected))
	for i, name := range expected {
		names[i] = string(name)
	}
	return fmt.Errorf("%s: found %q; expected one of %s", field, found, strings.Join(names, ", "))
}

// httpStatus returns an error if the code found in a field is no HTTP status, and not 0.
func httpStatus(field string, code int) error {
	if code != 0 && (code < 100 || code > 599) {
		return fmt.Errorf("%s: found %d; expected an HTTP status, or 0 for no response", field, code)
	}
	return nil
}

// notAnIndex returns the error for a negative index.
func notAnIndex(field string, index int) error {
	return fmt.Errorf("%s: found %d; expected the position in the scenario, from 0", field, index)
}

// negative returns the error for a negative duration.
func negative(field string, found time.Duration) error {
	return fmt.Errorf("%s: found %d; expected a number of nanoseconds, 0 or more", field, found)
}
