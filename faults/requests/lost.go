package requests

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Lost is the fault type response-lost: the fault proxy forwards requests but does not deliver
// their responses.
var Lost = faults.Type{
	Name: "response-lost",
	Description: "The API server performs matching requests of the subject, but the fault proxy withholds the responses. " +
		"The subject cannot know whether a write was committed.",
	Healing: "The proxy delivers responses again. A request whose response is being withheld gets its reset or error at once.",
	Params: withMatch(withoutWatch,
		faults.Param{Name: "how", Description: "The replacement for the response: a reset of the request or connection (reset), an API error with the given code (error), or the first half of the response and then a reset of the request (cut).", Bounds: "one of " + strings.Join(lossNames, ", ")},
		faults.Param{Name: "code", Description: "The HTTP status of the error.", Bounds: "one of " + codes(lostCodes) + "; only with how error", Default: "504 (Timeout) with how error"},
		faults.Param{Name: "after", Description: "The time from the API server's response to its replacement.", Bounds: "0s to 10m", Default: "0s"},
		breaksParam(),
	),
	New:    NewLost,
	Sample: sampleLost,
}

// LostParams contains the parameters that a scenario sets for a response-lost fault. The Params
// field of [Lost] documents each parameter.
type LostParams struct {
	Match
	How    string        `yaml:"how"`
	Code   int           `yaml:"code"`
	After  time.Duration `yaml:"after"`
	Breaks string        `yaml:"breaks"`
}

// lossNames lists the permitted values of [LostParams.How], and lostCodes those of
// [LostParams.Code]. An API server can return the errors in lostCodes although it has committed
// the write.
var (
	lossNames = []string{lossReset, lossError, lossCut}
	lostCodes = []int{500, 503, 504}
)

// These are the permitted values of [LostParams.How]. The value says what the controller under
// test receives in place of the response.
const (
	lossReset = "reset"
	lossError = "error"
	lossCut   = "cut"
)

// NewLost returns a response-lost fault with the given parameters, or an error if a
// parameter is invalid.
func NewLost(params faults.Params) (faults.Fault, error) {
	var p LostParams
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if p.How == lossError && p.Code == 0 {
		p.Code = 504
	}
	if err := p.validate(params); err != nil {
		return nil, err
	}
	p.Breaks = cmp.Or(p.Breaks, string(interceptor.BreakConnection))
	loss, detail := p.loss()
	return newFault(p.Match, "lost the responses to", func(*rand.Rand) (interceptor.RequestEffect, string) {
		return interceptor.RequestEffect{Lose: &loss}, detail
	}), nil
}

// validate returns an error for each invalid parameter, with its position in the scenario. It
// returns nil if all parameters are valid.
func (p *LostParams) validate(params faults.Params) error {
	how := faults.OneOf(params, "how", p.How, lossNames)
	var code error
	switch {
	case p.Code != 0 && !slices.Contains(lostCodes, p.Code):
		code = params.Errorf("code", "unknown code %d; expected one of %s", p.Code, codes(lostCodes))
	case p.Code != 0 && how == nil && p.How != lossError:
		code = params.Errorf("code", "only permitted with how: error; found how: %s", p.How)
	}
	return scenario.JoinErrors(
		p.Match.validate(params, withoutWatch), how, code, p.validateBreaks(params, how == nil),
		faults.Between(params, "after", p.After, 0, durationMax),
	)
}

// validateBreaks returns an error if the value of p.Breaks is unknown. With how: error or how: cut, the fault
// resets no connection. The argument known says whether the value of p.How is valid.
func (p *LostParams) validateBreaks(params faults.Params, known bool) error {
	if p.Breaks == "" {
		return nil
	}
	if err := faults.OneOf(params, "breaks", p.Breaks, breakNames); err != nil {
		return err
	}
	if known && (p.How == lossError || p.How == lossCut && p.Breaks == string(interceptor.BreakConnection)) {
		return params.Errorf("breaks", "found %s with how: %s, which does not reset a connection; remove this field, or write how: %s", p.Breaks, p.How, lossReset)
	}
	return nil
}

// loss returns what the fault proxy sends in place of the response. The string result is the text
// for the fault's "fired" record in the history.
func (p *LostParams) loss() (interceptor.LostResponse, string) {
	loss := interceptor.LostResponse{After: p.After, Break: interceptor.ConnectionBreak(p.Breaks)}
	instead := "a reset of the " + p.Breaks
	switch p.How {
	case lossError:
		loss.Refuse = &interceptor.Refusal{Code: p.Code}
		instead = fmt.Sprintf("status %d", p.Code)
	case lossCut:
		loss.Cut, loss.Break = true, interceptor.BreakRequest // BreakConnection could discard the first half of the response
		instead = "the first half of the response"
	}
	detail := "lost the response; the subject receives " + instead
	if p.After > 0 {
		detail += fmt.Sprintf(" after %v", p.After)
	}
	return loss, detail
}
