package requests

import (
	"math/rand/v2"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Reset is the fault type request-reset: the fault proxy resets a request's HTTP/2 stream or
// connection.
var Reset = faults.Type{
	Name: "request-reset",
	Description: "The fault proxy resets the HTTP/2 stream or the TCP connection of matching requests of the subject. " +
		"The API server does not receive these requests.",
	Healing: "The proxy forwards all requests again.",
	Params:  withMatch(faults.Verbs, breaksParam()),
	New:     NewReset,
	Sample:  sampleReset,
}

// ResetParams contains the parameters that a scenario sets for a request-reset fault. The Params
// field of [Reset] documents each parameter.
type ResetParams struct {
	Match
	Breaks string `yaml:"breaks"`
}

// NewReset returns a request-reset fault with the given parameters, or an error if a
// parameter is invalid.
func NewReset(params faults.Params) (faults.Fault, error) {
	p := ResetParams{Breaks: string(interceptor.BreakConnection)}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	err := scenario.JoinErrors(p.validate(params, faults.Verbs), faults.OneOf(params, "breaks", p.Breaks, breakNames))
	if err != nil {
		return nil, err
	}
	return newFault(p.Match, "reset", func(*rand.Rand) (interceptor.RequestEffect, string) {
		return interceptor.RequestEffect{Break: interceptor.ConnectionBreak(p.Breaks)}, "reset the " + p.Breaks
	}), nil
}
