package requests

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Slow is the fault type request-slow: the fault proxy delays requests before it forwards the
// requests.
var Slow = faults.Type{
	Name:        "request-slow",
	Description: "The fault proxy delays matching requests of the subject before it forwards them to the API server.",
	Healing:     "The proxy forwards the delayed requests at once.",
	Params: withMatch(faults.Verbs,
		faults.Param{Name: "delay", Description: "The delay of each request.", Bounds: "1ms to 10m"},
		faults.Param{Name: "jitter", Description: "The maximum of a random time that is added to each delay.", Bounds: "0s to 10m", Default: "0s"},
	),
	New:    NewSlow,
	Sample: sampleSlow,
}

// SlowResponse is the fault type response-slow: the fault proxy delays responses.
//
// Meanwhile, the controllers under test may receive a watch event with a newer version of the
// object. A controller that stores the response in its cache then overwrites the newer version.
var SlowResponse = faults.Type{
	Name: "response-slow",
	Description: "The API server performs matching requests of the subject at once, but the fault proxy delays the responses. " +
		"Meanwhile others may change the object, and the subject may receive watch events.",
	Healing: "The proxy delivers the delayed responses at once.",
	Params: withMatch(withoutWatch,
		faults.Param{Name: "delay", Description: "The delay of each response.", Bounds: "1ms to 10m"},
		faults.Param{Name: "jitter", Description: "The maximum of a random time that is added to each delay.", Bounds: "0s to 10m", Default: "0s"},
	),
	New:                NewSlowResponse,
	NotGeneratedReason: "a fault that is newer than the generator would change the scenario of every seed",
}

// NewSlowResponse returns a response-slow fault with the given parameters, or an error if a
// parameter is invalid.
func NewSlowResponse(params faults.Params) (faults.Fault, error) {
	return newSlow(params, withoutWatch, func(delay time.Duration) interceptor.RequestEffect {
		return interceptor.RequestEffect{HoldResponse: delay}
	})
}

// SlowParams contains the parameters that a scenario sets for a request-slow or response-slow
// fault. The Params fields of [Slow] and [SlowResponse] document each parameter.
type SlowParams struct {
	Match
	Delay  time.Duration `yaml:"delay"`
	Jitter time.Duration `yaml:"jitter"`
}

// delayMin is the shortest delay of a request that a scenario may set.
const delayMin = time.Millisecond

// NewSlow returns a request-slow fault with the given parameters, or an error if a
// parameter is invalid.
func NewSlow(params faults.Params) (faults.Fault, error) {
	return newSlow(params, faults.Verbs, func(delay time.Duration) interceptor.RequestEffect {
		return interceptor.RequestEffect{Delay: delay}
	})
}

// newSlow returns a fault that delays requests or responses. It returns an error if a parameter is
// invalid. The argument verbs lists the permitted verbs. The argument effect is a function that
// returns the effect on a request: a delay of the request or of its response by the given time.
func newSlow(params faults.Params, verbs []string, effect func(time.Duration) interceptor.RequestEffect) (faults.Fault, error) {
	p := SlowParams{Delay: faults.NotGiven}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := p.validate(params, verbs); err != nil {
		return nil, err
	}
	return newFault(p.Match, "delayed", func(random *rand.Rand) (interceptor.RequestEffect, string) {
		delay := p.Delay
		if p.Jitter > 0 {
			delay += time.Duration(random.Int64N(int64(p.Jitter) + 1))
		}
		return effect(delay), fmt.Sprintf("delayed by %v", delay)
	}), nil
}

// validate returns an error for each invalid parameter, with its position in the scenario. It
// returns nil if all parameters are valid. The parameter verbs lists the permitted verbs.
func (p *SlowParams) validate(params faults.Params, verbs []string) error {
	return scenario.JoinErrors(p.Match.validate(params, verbs), faults.Between(params, "delay", p.Delay, delayMin, durationMax), faults.Between(params, "jitter", p.Jitter, 0, durationMax))
}

// Hang is the fault type request-hang: the fault proxy holds requests, and later resets or
// forwards these requests.
var Hang = faults.Type{
	Name:        "request-hang",
	Description: "The fault proxy holds matching requests of the subject for the time `within`. Then it resets them or forwards them to the API server, as `then` says.",
	Healing:     "The proxy resets or forwards the held requests at once.",
	Params: withMatch(faults.Verbs,
		faults.Param{Name: "within", Description: "The time for which a request is held.", Bounds: "1ms to 10m", Default: "10m"},
		faults.Param{Name: "then", Description: "What happens after the time `within`: the proxy resets the request, and the API server does not receive it (reset), or the proxy forwards the request (pass).", Bounds: "one of reset, pass", Default: "reset"},
		breaksParam(),
	),
	New:    NewHang,
	Sample: sampleHang,
}

// HangParams contains the parameters that a scenario sets for a request-hang fault. The Params
// field of [Hang] documents each parameter.
type HangParams struct {
	Match
	Within time.Duration `yaml:"within"`
	Then   string        `yaml:"then"`
	Breaks string        `yaml:"breaks"`
}

// NewHang returns a request-hang fault with the given parameters, or an error if a
// parameter is invalid.
func NewHang(params faults.Params) (faults.Fault, error) {
	p := HangParams{Within: durationMax, Then: "reset"}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := p.validate(params); err != nil {
		return nil, err
	}
	p.Breaks = cmp.Or(p.Breaks, string(interceptor.BreakConnection))
	effect, detail := interceptor.RequestEffect{Delay: p.Within}, fmt.Sprintf("held for up to %v, then forwarded", p.Within)
	if p.Then == "reset" {
		effect.Break = interceptor.ConnectionBreak(p.Breaks)
		detail = fmt.Sprintf("held for up to %v, then reset the %s", p.Within, p.Breaks)
	}
	return newFault(p.Match, "held", func(*rand.Rand) (interceptor.RequestEffect, string) { return effect, detail }), nil
}

// validate returns an error for each invalid parameter, with its position in the scenario. It
// returns nil if all parameters are valid.
func (p *HangParams) validate(params faults.Params) error {
	return scenario.JoinErrors(
		p.Match.validate(params, faults.Verbs),
		faults.Between(params, "within", p.Within, delayMin, durationMax),
		faults.OneOf(params, "then", p.Then, []string{"reset", "pass"}),
		p.validateBreaks(params),
	)
}

// validateBreaks returns an error if the value of p.Breaks is unknown, or if the fault resets nothing.
func (p *HangParams) validateBreaks(params faults.Params) error {
	switch {
	case p.Breaks == "":
		return nil
	case p.Then == "pass":
		return params.Errorf("breaks", "found %s with then: pass, which resets nothing; remove this field, or write then: reset", p.Breaks)
	}
	return faults.OneOf(params, "breaks", p.Breaks, breakNames)
}
