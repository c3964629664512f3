package requests

import (
	"math/rand/v2"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
)

// codesByVerb lists, for each verb, the HTTP error codes that generated api-error faults may
// return. It omits errors that would be wrong for the object, such as 404 for an object that
// exists.
var codesByVerb = map[string][]int{
	"get":    {429, 500, 503, 504},
	"list":   {429, 500, 503, 504},
	"create": {403, 422, 429, 500, 503, 504}, // a quota causes 403, a policy 422
	"update": {409, 429, 500, 503, 504},
	"patch":  {409, 429, 500, 503, 504},
	"delete": {409, 429, 500, 503, 504},
}

// outageMax is the longest time for which a generated fault may change every matching request. It
// is short, because a client whose requests fail waits longer before each retry. After the fault
// has ended, the client may still wait about as long as the fault lasted. If
// [faults.SampleInput.Long] is set, a fault may change every matching request for longer.
const outageMax = 1500 * time.Millisecond

// sampleMatch returns random parameters that select requests for a generated fault. The fault then
// affects one matching request (nth), every n-th, a random share, or all of them.
//
// Without nth, sampleMatch also draws a limit for the number of affected requests, from 1 to the
// argument times. It sets no limit if times is 0. If o.Long is set, it may also omit the limit.
func sampleMatch(r *rand.Rand, o faults.SampleInput, times int) Match {
	request := faults.Pick(r, o.Requests...)
	m := Match{Verb: request.Verb, Resource: request.Resource, Subresource: request.Subresource}
	switch draw := r.IntN(4); {
	case draw == 0:
		nth := 1 + r.IntN(12)
		m.Nth = &nth
		return m
	case draw == 1:
		every := 2 + r.IntN(6)
		m.Every = &every
	case draw == 2 || o.Span > outageMax && !o.Long:
		probability := float64(1+r.IntN(5)) / 10
		m.Probability = &probability
	}
	if times > 0 && !(o.Long && r.IntN(2) == 0) {
		m.Times = 1 + r.IntN(times)
	}
	return m
}

// sampleError returns random parameters of an api-error fault, for a generated scenario.
func sampleError(r *rand.Rand, o faults.SampleInput) any {
	p := &ErrorParams{Match: sampleMatch(r, o, 20)}
	p.Code = faults.Pick(r, codesByVerb[p.Verb]...)
	if (p.Code == 429 || p.Code == 503) && r.IntN(3) == 0 {
		p.RetryAfterSeconds = 1
	}
	return p
}

// sampleReset returns random parameters of a request-reset fault, for a generated scenario.
func sampleReset(r *rand.Rand, o faults.SampleInput) any {
	return &ResetParams{Match: sampleMatch(r, o, 6), Breaks: sampleBreak(r)}
}

// sampleSlow returns random parameters of a request-slow fault, for a generated scenario.
func sampleSlow(r *rand.Rand, o faults.SampleInput) any {
	return &SlowParams{
		Match:  sampleMatch(r, o, 0),
		Delay:  faults.PickTime(r, 10*time.Millisecond, 500*time.Millisecond, 10*time.Millisecond),
		Jitter: faults.PickTime(r, 0, 200*time.Millisecond, 50*time.Millisecond),
	}
}

// sampleHang returns random parameters of a request-hang fault, for a generated scenario.
func sampleHang(r *rand.Rand, o faults.SampleInput) any {
	p := &HangParams{Match: sampleMatch(r, o, 4), Then: faults.Pick(r, "reset", "pass")}
	p.Within = faults.PickTime(r, 200*time.Millisecond, o.Span, 100*time.Millisecond)
	if p.Then == "reset" {
		p.Breaks = sampleBreak(r)
	}
	return p
}

// sampleLost returns random parameters of a response-lost fault, for a generated scenario.
func sampleLost(r *rand.Rand, o faults.SampleInput) any {
	p := &LostParams{Match: sampleMatch(r, o, 6), How: faults.Pick(r, lossNames...)}
	switch p.How {
	case lossError:
		p.Code = faults.Pick(r, lostCodes...)
	case lossReset:
		p.Breaks = sampleBreak(r)
	}
	if p.How != lossCut {
		p.After = faults.PickTime(r, 0, 300*time.Millisecond, 100*time.Millisecond)
	}
	return p
}

// sampleBreak returns a random value of the parameter "breaks": "request" or "connection". The
// result is three times as often "request", because a reset of the connection also breaks all
// watches.
func sampleBreak(r *rand.Rand) string {
	if r.IntN(4) == 0 {
		return string(interceptor.BreakConnection)
	}
	return string(interceptor.BreakRequest)
}
