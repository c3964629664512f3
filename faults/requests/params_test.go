package requests

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// newFromYAML creates a fault that selects creates of pods. The argument rest contains the fault's
// other parameters in YAML.
func newFromYAML(faultType faults.Type, rest string) (*fault, error) {
	params, err := scenario.ParseParams("s.yaml", faultType.Name, []byte("{verb: create, resource: pods"+rest+"}"))
	if err != nil {
		return nil, err
	}
	f, err := faultType.New(params)
	if err != nil {
		return nil, err
	}
	return f.(*fault), nil
}

// TestEffects checks the effect and the text of the "fired" record in the history for each set of
// parameters.
func TestEffects(t *testing.T) {
	tests := []struct {
		faultType faults.Type
		rest      string
		want      interceptor.RequestEffect
		detail    string
	}{
		{Error, ", code: 503, retryAfterSeconds: 2", interceptor.RequestEffect{Refuse: &interceptor.Refusal{Code: 503, RetryAfterSeconds: 2}}, "refused with 503"},
		{Reset, "", interceptor.RequestEffect{Break: interceptor.BreakConnection}, "reset the connection"},
		{Reset, ", breaks: request", interceptor.RequestEffect{Break: interceptor.BreakRequest}, "reset the request"},
		{Slow, ", delay: 2s", interceptor.RequestEffect{Delay: 2 * time.Second}, "delayed by 2s"},
		{Hang, "", interceptor.RequestEffect{Delay: 10 * time.Minute, Break: interceptor.BreakConnection}, "held for up to 10m0s, then reset the connection"},
		{Hang, ", within: 1s, then: pass", interceptor.RequestEffect{Delay: time.Second}, "held for up to 1s, then forwarded"},
		{Lost, ", how: reset, after: 1s", interceptor.RequestEffect{Lose: &interceptor.LostResponse{After: time.Second, Break: interceptor.BreakConnection}}, "lost the response; the subject receives a reset of the connection after 1s"},
		{Lost, ", how: error", interceptor.RequestEffect{Lose: &interceptor.LostResponse{Refuse: &interceptor.Refusal{Code: 504}, Break: interceptor.BreakConnection}}, "lost the response; the subject receives status 504"},
		{Lost, ", how: cut", interceptor.RequestEffect{Lose: &interceptor.LostResponse{Cut: true, Break: interceptor.BreakRequest}}, "lost the response; the subject receives the first half of the response"},
	}
	for _, test := range tests {
		f, err := newFromYAML(test.faultType, test.rest)
		if err != nil {
			t.Errorf("%s%s: %v", test.faultType.Name, test.rest, err)
			continue
		}
		effect, detail := f.effect(rand.New(rand.NewPCG(1, 1)))
		if diff := cmp.Diff(test.want, effect); diff != "" || detail != test.detail {
			t.Errorf("%s%s: detail %q, want %q; effect (-want +got):\n%s", test.faultType.Name, test.rest, detail, test.detail, diff)
		}
	}
}

// TestJitter checks that the random delays cover their whole range. Equal seeds must give equal
// delays.
func TestJitter(t *testing.T) {
	f, err := newFromYAML(Slow, ", delay: 1s, jitter: 100ms")
	if err != nil {
		t.Fatal(err)
	}
	delays := func(seed uint64) (all []time.Duration) {
		random := rand.New(rand.NewPCG(seed, 0))
		for range 1000 {
			effect, _ := f.effect(random)
			all = append(all, effect.Delay)
		}
		return all
	}
	first := delays(1)
	low, high := first[0], first[0]
	for _, delay := range first {
		low, high = min(low, delay), max(high, delay)
	}
	if low < time.Second || low > 1005*time.Millisecond || high < 1095*time.Millisecond || high > 1100*time.Millisecond {
		t.Errorf("found delays from %v to %v, want about 1s to 1.1s", low, high)
	}
	if cmp.Equal(first, delays(2)) || !cmp.Equal(first, delays(1)) {
		t.Error("the delays do not depend on the seed alone")
	}
}

func TestBadParams(t *testing.T) {
	const verbs = "get, list, create, update, patch, delete, deletecollection"
	at := func(rest, field string) string { // at returns the position of a field's value in the line that newFromYAML parses
		line := "{verb: create, resource: pods" + rest
		column := strings.Index(line, field+": ") + len(field) + 3
		return "s.yaml:1:" + strconv.Itoa(column) + ": "
	}
	tests := []struct {
		faultType         faults.Type
		rest, field, want string
	}{
		{Error, ", code: 500, owner: web", "owner", `api-error.owner: found "web"; expected a kind and a name, such as ReplicaSet/web-*`},
		{Error, ", code: 500, owner: '[/a'", "owner", `api-error.owner: found "[/a", which is not a valid glob; expected each [ to be closed, such as web-[a-c]*`},
		{Error, ", code: 500, subresource: nope", "subresource", `api-error.subresource: found "nope"; expected attach, binding, ephemeralcontainers, eviction, exec, log, portforward, proxy, resize or status`},
		{Error, ", code: 500, name: '[z-a]'", "name", `api-error.name: found "[z-a]", which matches no name, because z comes after a; expected a range such as [a-z]`},
		{Error, ", code: 500, name: 'a b'", "name", `api-error.name: found "a b", which matches no name, because names have no spaces; expected a glob such as web-*`},
		{Reset, ", breaks: all", "breaks", `request-reset.breaks: unknown value "all"; expected one of request, connection`},
		{Slow, ", delay: 11m", "delay", "request-slow.delay: 11m0s is out of bounds; expected 1ms to 10m0s"},
		{Slow, ", delay: 1s, jitter: -1s", "jitter", "request-slow.jitter: -1s is out of bounds; expected 0s to 10m0s"},
		{Hang, ", within: 0s", "within", "request-hang.within: 0s is out of bounds; expected 1ms to 10m0s"},
		{Hang, ", then: die", "then", `request-hang.then: unknown value "die"; expected one of reset, pass`},
		{Lost, ", how: eaten", "how", `response-lost.how: unknown value "eaten"; expected one of reset, error, cut`},
		{Lost, ", how: error, code: 409", "code", "response-lost.code: unknown code 409; expected one of 500, 503, 504"},
		{Lost, ", how: reset, code: 500", "code", "response-lost.code: only permitted with how: error; found how: reset"},
		{Lost, ", how: error, breaks: request", "breaks", "response-lost.breaks: found request with how: error, which does not reset a connection; remove this field, or write how: reset"},
		{Lost, ", how: cut, breaks: connection", "breaks", "response-lost.breaks: found connection with how: cut, which does not reset a connection; remove this field, or write how: reset"},
		{Hang, ", within: 1s, then: pass, breaks: request", "breaks", "request-hang.breaks: found request with then: pass, which resets nothing; remove this field, or write then: reset"},
		{Error, ", code: 500, nth: 3, times: 4", "times", "api-error.times: found 4 beside nth, with which the fault fires once; remove this field, or write every instead of nth"},
		{Lost, ", how: reset, after: 1h", "after", "response-lost.after: 1h0m0s is out of bounds; expected 0s to 10m0s"},
	}
	for _, test := range tests {
		_, err := newFromYAML(test.faultType, test.rest)
		if want := at(test.rest, test.field) + test.want; err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", test.rest, err, want)
		}
	}
	for rest, want := range map[string]string{
		"{verb: create, resource: pods}":                       "s.yaml: response-lost.how: not given; expected one of reset, error, cut",
		"{verb: watch, resource: pods, how: cut}":              `s.yaml:1:8: response-lost.verb: unknown value "watch"; expected one of ` + verbs + "; for watches, use a fault such as watch-end, watch-delay or request-reset",
		"{verb: list, resource: pods, owner: a/b, how: reset}": "s.yaml:1:37: response-lost.owner: a list request contains no object, so it has no owner; remove this field",
	} {
		params, err := scenario.ParseParams("s.yaml", "response-lost", []byte(rest))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewLost(params); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", rest, err, want)
		}
	}
}
