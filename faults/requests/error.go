package requests

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Error is the fault type api-error: the fault proxy answers requests with an API error.
var Error = faults.Type{
	Name:        "api-error",
	Description: "The fault proxy answers matching requests of the subject with an API error. The API server does not receive these requests.",
	Healing:     "The proxy forwards all requests again.",
	Params: withMatch(faults.Verbs,
		faults.Param{Name: "code", Description: "The HTTP status of the response. It determines the Status reason.", Bounds: "one of " + codes(interceptor.RefusalCodes())},
		faults.Param{Name: "retryAfterSeconds", Description: "The Retry-After header in seconds. client-go then retries the request by itself, creates included.", Bounds: "0 to 60; only with code 429 or 5xx", Default: "0 (no header)"},
	),
	New:    NewError,
	Sample: sampleError,
}

// ErrorParams contains the parameters that a scenario sets for an api-error fault. The Params
// field of [Error] documents each parameter.
type ErrorParams struct {
	Match
	Code              int `yaml:"code"`
	RetryAfterSeconds int `yaml:"retryAfterSeconds"`
}

// retryAfterSecondsMax is the largest number of seconds that a scenario may set for the
// Retry-After header.
const retryAfterSecondsMax = 60

// codes formats HTTP status codes as text for the reference documentation, such as "429, 503".
func codes(of []int) string {
	var names []string
	for _, code := range of {
		names = append(names, strconv.Itoa(code))
	}
	return strings.Join(names, ", ")
}

// NewError returns an api-error fault with the given parameters, or an error if a parameter
// is invalid.
func NewError(params faults.Params) (faults.Fault, error) {
	var p ErrorParams
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := p.validate(params); err != nil {
		return nil, err
	}
	refusal := interceptor.Refusal{Code: p.Code, RetryAfterSeconds: p.RetryAfterSeconds}
	return newFault(p.Match, "refused", func(*rand.Rand) (interceptor.RequestEffect, string) {
		return interceptor.RequestEffect{Refuse: &refusal}, fmt.Sprintf("refused with %d", refusal.Code)
	}), nil
}

// validate returns an error for each invalid parameter, with its position in the scenario. It
// returns nil if all parameters are valid.
func (p *ErrorParams) validate(params faults.Params) error {
	return scenario.JoinErrors(
		p.Match.validate(params, faults.Verbs),
		faults.Between(params, "retryAfterSeconds", p.RetryAfterSeconds, 0, retryAfterSecondsMax),
		p.validateCode(params),
	)
}

// validateCode returns an error if a request cannot be refused with the HTTP status p.Code. If the
// status is valid, it also returns an error if a response with it cannot have a Retry-After header,
// but the scenario sets one.
func (p *ErrorParams) validateCode(params faults.Params) error {
	switch {
	case p.Code == 0:
		return params.Errorf("code", "not given; expected one of %s", codes(interceptor.RefusalCodes()))
	case !interceptor.CanRefuse(p.Code):
		return params.Errorf("code", "unknown code %d; expected one of %s", p.Code, codes(interceptor.RefusalCodes()))
	case 0 < p.RetryAfterSeconds && p.RetryAfterSeconds <= retryAfterSecondsMax && p.Code != 429 && p.Code < 500:
		return params.Errorf("retryAfterSeconds", "only permitted with code 429 or 5xx; found code %d", p.Code)
	}
	return nil
}
