// Package requests contains the faults that change single requests of the subject, the
// controllers under test. The fault proxy refuses, resets or delays a request, or does not
// deliver the response. The parameters in [Match] select the requests.
package requests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// durationMax is the longest delay that a scenario may set. It limits the delay of a request. It
// also limits how late the controller under test receives the error or reset that replaces a lost
// response.
const durationMax = 10 * time.Minute

// effectFunc decides what a fault does to a request. The result detail is the text for the
// fault's "fired" record in the history.
//
// An effectFunc must draw equally many random numbers for every request. Otherwise the same seed
// could select other requests.
type effectFunc func(random *rand.Rand) (effect interceptor.RequestEffect, detail string)

// fault is a fault of any type in this package. The field selection selects requests, and the field
// effect says how the fault changes them. When the test run heals the fault, all delays end at
// once. The fault proxy then forwards or resets the delayed requests, as the field effect says.
type fault struct {
	faults.Registration
	selection
	effect effectFunc
	// action is the beginning of the fault's summary, such as "refused". The summary then says
	// how many requests.
	action string

	env *faults.Env
}

// newFault returns a fault that changes requests. The argument match selects the requests, and the
// argument effect says how the fault changes them. The argument action, such as "refused", is the
// beginning of the fault's summary.
func newFault(match Match, action string, effect effectFunc) *fault {
	return &fault{selection: selection{matcher: match}, action: action, effect: effect}
}

func (f *fault) Inject(_ context.Context, env *faults.Env) error {
	f.env = env
	f.Remove = env.Interceptor.OnRequest(f.match)
	return nil
}

func (f *fault) Summary() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("%s %d of %d matching requests", f.action, f.fired, f.matches)
}

// match returns the fault's effect on a request, or nil if the fault does not fire at this
// request. It writes a history record each time the fault fires.
func (f *fault) match(request *history.Request) *interceptor.RequestEffect {
	if !f.matcher.matches(request, f.env.Interceptor.Controller) {
		return nil
	}
	effect, detail, fires := f.count(f.env.Rand, f.effect)
	if !fires {
		return nil
	}
	effect.Fault = f.env.Report.Name()
	f.env.Report.Fired(request.ID, objectRef(request), detail)
	return &effect
}

// objectRef returns a reference to the request's object. If the request contains no object name,
// the name in the reference is empty.
func objectRef(request *history.Request) *history.Ref {
	return &history.Ref{Resource: request.Resource, Namespace: request.Namespace, Name: request.ObjectName()}
}

// breakNames lists the permitted values of the parameter "breaks", which says what a reset breaks:
// "request" or "connection".
var breakNames = []string{string(interceptor.BreakRequest), string(interceptor.BreakConnection)}

// breaksParam returns the documentation of the parameter "breaks", which several fault types have.
func breaksParam() faults.Param {
	return faults.Param{
		Name:        "breaks",
		Description: "The scope of a reset: the HTTP/2 stream of the request (request), or the TCP connection with all other requests and watches on it (connection).",
		Bounds:      "one of " + strings.Join(breakNames, ", "),
		Default:     string(interceptor.BreakConnection),
	}
}

// withoutWatch contains every verb except watch. A watch has no single response that a
// fault could withhold.
var withoutWatch = slices.DeleteFunc(slices.Clone(faults.Verbs), func(verb string) bool { return verb == "watch" })
