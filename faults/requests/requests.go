// Package requests contains the faults of single requests: the proxy refuses, breaks or
// delays a request, or withholds its response. All types select their requests with [Match].
package requests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/proxy"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// durationMax is the maximum delay of a request.
const durationMax = 10 * time.Minute

// effectFunc returns the effect on a request and its description for the record. It
// must draw the same amount of random numbers for every request, so that a seed gives
// the same draws.
type effectFunc func(random *rand.Rand) (effect proxy.RequestEffect, detail string)

// fault is a fault of any type in this package.
type fault struct {
	selection
	effect effectFunc
	// action is a verb in the past tense for the summary.
	action string

	env    *faults.Env
	remove func()
}

func newFault(match Match, action string, effect effectFunc) *fault {
	return &fault{selection: selection{matcher: match}, action: action, effect: effect}
}

func (f *fault) Inject(_ context.Context, env *faults.Env) error {
	f.env = env
	f.remove = env.Proxy.OnRequest(f.match)
	return nil
}

// Heal ends the fault. The proxy then forwards the delayed requests without further
// delay.
func (f *fault) Heal(context.Context) error {
	if f.remove != nil {
		f.remove()
	}
	return nil
}

func (f *fault) Summary() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("%s %d of %d matching requests", f.action, f.fired, f.matches)
}

func (f *fault) match(request *history.Request) *proxy.RequestEffect {
	if !f.matcher.matches(request, f.env.Proxy.Controller) {
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

// objectRef returns a reference to the object of a request. Its name is empty if the request
// names no object.
func objectRef(request *history.Request) *history.Ref {
	return &history.Ref{Resource: request.Resource, Namespace: request.Namespace, Name: request.ObjectName()}
}

// breakNames are the values of the parameter breaks.
var breakNames = []string{string(proxy.BreakRequest), string(proxy.BreakConnection)}

// breaksParam documents the parameter breaks.
func breaksParam() faults.Param {
	return faults.Param{
		Name:        "breaks",
		Description: "The scope of a reset: the HTTP/2 stream of the request (request), or the TCP connection with all other requests and watches on it (connection).",
		Bounds:      "one of " + strings.Join(breakNames, ", "),
		Default:     string(proxy.BreakConnection),
	}
}

// validateDuration checks the delay of a request.
func validateDuration(params faults.Params, field string, d, lowest time.Duration) error {
	if d < lowest || d > durationMax {
		return params.Errorf(field, "%v is out of bounds; expected %v to %v", d, lowest, durationMax)
	}
	return nil
}

// withoutWatch are the verbs of requests that have a single response, which excludes
// watch.
var withoutWatch = slices.DeleteFunc(slices.Clone(faults.Verbs), func(verb string) bool { return verb == "watch" })
