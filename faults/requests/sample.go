package requests

import (
	"math/rand/v2"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/proxy"
)

// codesByVerb are the errors that a failing API server returns for each verb. Errors about
// the state of an object, such as 404, are excluded, because they would misreport that
// state.
var codesByVerb = map[string][]int{
	"get":    {429, 500, 503, 504},
	"list":   {429, 500, 503, 504},
	"create": {403, 422, 429, 500, 503, 504}, // as by a quota or a policy
	"update": {409, 429, 500, 503, 504},
	"patch":  {409, 429, 500, 503, 504},
	"delete": {409, 429, 500, 503, 504},
}

// outageMax is the maximum time for which every matching request fails. The limit is
// low because a client that backs off needs up to the same time again to recover.
const outageMax = 1500 * time.Millisecond

// sampleMatch draws the parameters that select requests. If times is not 0, it limits
// the number of firings that may be drawn.
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
	case draw == 2 || o.Span > outageMax:
		probability := float64(1+r.IntN(5)) / 10
		m.Probability = &probability
	}
	if times > 0 {
		m.Times = 1 + r.IntN(times)
	}
	return m
}

func sampleError(r *rand.Rand, o faults.SampleInput) any {
	p := &ErrorParams{Match: sampleMatch(r, o, 20)}
	p.Code = faults.Pick(r, codesByVerb[p.Verb]...)
	if (p.Code == 429 || p.Code == 503) && r.IntN(3) == 0 {
		p.RetryAfterSeconds = 1
	}
	return p
}

func sampleReset(r *rand.Rand, o faults.SampleInput) any {
	return &ResetParams{Match: sampleMatch(r, o, 6), Breaks: sampleBreak(r)}
}

func sampleSlow(r *rand.Rand, o faults.SampleInput) any {
	return &SlowParams{
		Match:  sampleMatch(r, o, 0),
		Delay:  faults.PickTime(r, 10*time.Millisecond, 500*time.Millisecond, 10*time.Millisecond),
		Jitter: faults.PickTime(r, 0, 200*time.Millisecond, 50*time.Millisecond),
	}
}

func sampleHang(r *rand.Rand, o faults.SampleInput) any {
	p := &HangParams{Match: sampleMatch(r, o, 4), Then: faults.Pick(r, "reset", "pass")}
	p.Within = faults.PickTime(r, 200*time.Millisecond, o.Span, 100*time.Millisecond)
	if p.Then == "reset" {
		p.Breaks = sampleBreak(r)
	}
	return p
}

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

// sampleBreak draws the way in which a request is broken. A reset of the request is
// more likely than a reset of the connection, because the latter breaks all watches.
func sampleBreak(r *rand.Rand) string {
	if r.IntN(4) == 0 {
		return string(proxy.BreakConnection)
	}
	return string(proxy.BreakRequest)
}
