package history

import (
	"cmp"
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
		o := &r.Commit.Object
		if err := o.validate("commit.object"); err != nil || o.Version != 0 {
			return err
		}
		return fmt.Errorf("commit.object.version: found 0; expected the resourceVersion of %s", o.Ref)
	case r.Request != nil && r.Request.Subject == "":
		return errors.New("request.subject: found none; expected the name of the process that sent the request, such as subject-0")
	case r.Request != nil:
		return cmp.Or(oneOf("request.verb", r.Request.Verb, verbs...), negative("request.bytes", "bytes", r.Request.Bytes))
	case r.Delivery != nil && min(r.Delivery.Held, time.Duration(r.Delivery.Bytes)) < 0:
		return cmp.Or(negative("delivery.held", "nanoseconds", r.Delivery.Held), negative("delivery.bytes", "bytes", r.Delivery.Bytes))
	case r.Stall != nil:
		return negative("stall.lasted", "nanoseconds", r.Stall.Duration)
	case r.Delivery != nil && r.Delivery.Type == Bookmark && r.Delivery.Object.Version == 0:
		return errors.New("delivery.object.version: found 0; expected the resourceVersion of the bookmark")
	case r.Delivery != nil && r.Delivery.Type.HasObject():
		return r.Delivery.Object.validate("delivery.object")
	case r.Delivery != nil:
		return oneOf("delivery.type", r.Delivery.Type, Added, Modified, Deleted, Bookmark, Error)
	case r.Response != nil:
		return cmp.Or(httpStatus("response.code", r.Response.Code), httpStatus("response.serverCode", r.Response.ServerCode), negative("response.bytes", "bytes", r.Response.Bytes))
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
	case r.Process != nil && r.Process.Name == "":
		return errors.New("process.name: found none; expected the name of a process, such as subject-0")
	case r.Process != nil && r.Process.Usage != nil && min(r.Process.Usage.CPU, time.Duration(r.Process.Usage.PeakMemory)) < 0:
		return cmp.Or(negative("process.usage.cpu", "nanoseconds", r.Process.Usage.CPU), negative("process.usage.peakMemory", "bytes", r.Process.Usage.PeakMemory))
	case r.Process != nil:
		return oneOf("process.event", r.Process.Event, ProcessStarted, ProcessStopped, ProcessDied, ProcessPaused, ProcessResumed)
	}
	return nil
}

// validate returns an error if the object has no resource or name, or a negative generation. The argument
// field is the place of the object in the record, such as "commit.object".
func (o *Object) validate(field string) error {
	switch {
	case o.Resource == "":
		return fmt.Errorf("%s: found no resource; expected one, such as pods", field)
	case o.Name == "":
		return fmt.Errorf("%s: found no name of the object; expected one", field)
	case o.Generation < 0:
		return fmt.Errorf("%s.generation: found %d; expected 0 or more", field, o.Generation)
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

// negative returns an error if the number found in a field is negative.
func negative[T ~int | ~int64](field, unit string, found T) error {
	if found < 0 {
		return fmt.Errorf("%s: found %d; expected a number of %s, 0 or more", field, found, unit)
	}
	return nil
}
