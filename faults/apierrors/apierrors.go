// Package apierrors has the faults in which the API server answers with an
// error: a request is refused before it reaches the server, with the Status that
// the real server would send. Nothing is committed.
package apierrors

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/proxy"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Kind is the kind "api-error".
var Kind = faults.Kind{
	Name:      "api-error",
	Sentence:  "Requests of the subject that match are answered with an API error, and never reach the API server.",
	Healing:   "Requests pass again.",
	Providers: faults.Providers,
	Params: []faults.Param{
		{Name: "verb", Sentence: "The verb of the requests.", Bounds: "one of " + strings.Join(faults.Verbs, ", ")},
		{Name: "resource", Sentence: "The resource of the requests, with its group.", Bounds: "one of " + strings.Join(faults.Resources, ", ")},
		{Name: "subresource", Sentence: "The subresource; without it, requests for a subresource do not match.", Bounds: "such as status", Default: "none"},
		{Name: "namespace", Sentence: "The namespace, as a glob.", Bounds: "a glob (* ? [a-z])", Default: "any"},
		{Name: "name", Sentence: "The object's name, as a glob; of a create, its generateName if it has no name.", Bounds: "a glob (* ? [a-z])", Default: "any"},
		{Name: "code", Sentence: "The HTTP status of the answer; its reason follows from it.", Bounds: "one of " + codes()},
		{Name: "retryAfterSeconds", Sentence: "Asks the client to wait so many seconds. client-go then repeats the request by itself, creates included.", Bounds: "0 to 60, with code 429 or 503 only", Default: "0 (does not ask)"},
		{Name: "nth", Sentence: "Fires at the nth match only, counted from 1.", Bounds: "1 to 1000000", Default: "every match"},
		{Name: "every", Sentence: "Fires at each so many matches: 3 means the 3rd, the 6th and so on.", Bounds: "1 to 1000000", Default: "every match"},
		{Name: "probability", Sentence: "Fires at each match with this probability.", Bounds: "more than 0, up to 1", Default: "every match"},
		{Name: "times", Sentence: "Fires so many times at most.", Bounds: "0 to 1000000", Default: "0 (no limit)"},
	},
	New: New,
}

// Params are the parameters of an api-error; [Kind] documents them. Pointers
// tell what is given from what is not.
type Params struct {
	Verb              string   `yaml:"verb"`
	Resource          string   `yaml:"resource"`
	Subresource       string   `yaml:"subresource"`
	Namespace         string   `yaml:"namespace"`
	Name              string   `yaml:"name"`
	Code              int      `yaml:"code"`
	RetryAfterSeconds int      `yaml:"retryAfterSeconds"`
	Nth               *int     `yaml:"nth"`
	Every             *int     `yaml:"every"`
	Probability       *float64 `yaml:"probability"`
	Times             int      `yaml:"times"`
}

const (
	countMax             = 1_000_000
	retryAfterSecondsMax = 60
)

func codes() string {
	var names []string
	for _, code := range proxy.RefusalCodes() {
		names = append(names, strconv.Itoa(code))
	}
	return strings.Join(names, ", ")
}

// New makes the fault that params describe.
func New(params faults.Params) (faults.Fault, error) {
	var p Params
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := p.validate(params); err != nil {
		return nil, err
	}
	return &fault{params: p}, nil
}

func (p *Params) validate(params faults.Params) error {
	if err := faults.OneOf(params, "verb", p.Verb, faults.Verbs); err != nil {
		return err
	}
	if err := faults.OneOf(params, "resource", p.Resource, faults.Resources); err != nil {
		return err
	}
	for _, glob := range []struct{ field, pattern string }{{"namespace", p.Namespace}, {"name", p.Name}} {
		if _, err := path.Match(glob.pattern, ""); err != nil {
			return params.Errorf(glob.field, "bad glob %q; expected a name with *, ? and [a-z] in it", glob.pattern)
		}
	}
	if p.Name != "" && (p.Verb == "list" || p.Verb == "watch" || p.Verb == "deletecollection") {
		return params.Errorf("name", "a %s has no name; expected none", p.Verb)
	}
	return p.validateEffect(params)
}

func (p *Params) validateEffect(params faults.Params) error {
	switch {
	case p.Code == 0:
		return params.Errorf("code", "not given; expected one of %s", codes())
	case !proxy.CanRefuse(p.Code):
		return params.Errorf("code", "unknown code %d; expected one of %s", p.Code, codes())
	case p.RetryAfterSeconds < 0 || p.RetryAfterSeconds > retryAfterSecondsMax:
		return params.Errorf("retryAfterSeconds", "%d is out of bounds; expected 0 to %d", p.RetryAfterSeconds, retryAfterSecondsMax)
	case p.RetryAfterSeconds > 0 && p.Code != 429 && p.Code != 503:
		return params.Errorf("retryAfterSeconds", "goes with code 429 or 503, not %d", p.Code)
	case p.Times < 0 || p.Times > countMax:
		return params.Errorf("times", "%d is out of bounds; expected 0 to %d", p.Times, countMax)
	case p.Probability != nil && !(*p.Probability > 0 && *p.Probability <= 1):
		return params.Errorf("probability", "%v is out of bounds; expected more than 0, up to 1", *p.Probability)
	}
	triggers := 0
	for _, count := range []struct {
		field string
		value *int
	}{{"nth", p.Nth}, {"every", p.Every}} {
		if count.value == nil {
			continue
		}
		if *count.value < 1 || *count.value > countMax {
			return params.Errorf(count.field, "%d is out of bounds; expected 1 to %d", *count.value, countMax)
		}
		triggers++
	}
	if p.Probability != nil {
		triggers++
	}
	if triggers > 1 {
		return params.Errorf("", "expected at most one of nth, every and probability, found %d", triggers)
	}
	return nil
}

// fault is an api-error in force.
type fault struct {
	params Params
	env    *faults.Env
	remove func()

	mu             sync.Mutex // requests come from many goroutines
	matches, fired int
}

func (f *fault) Inject(_ context.Context, env *faults.Env) error {
	f.env = env
	f.remove = env.Proxy.OnRequest(f.decide)
	return nil
}

func (f *fault) Heal(context.Context) error {
	if f.remove != nil {
		f.remove()
	}
	return nil
}

func (f *fault) Tally() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("refused %d of %d matching requests", f.fired, f.matches)
}

func (f *fault) decide(request *history.Request) *proxy.RequestEffect {
	if !f.params.match(request) || !f.fires() {
		return nil
	}
	refusal := &proxy.Refusal{Code: f.params.Code, RetryAfterSeconds: f.params.RetryAfterSeconds}
	f.env.Report.Fired(request.ID, about(request), fmt.Sprintf("refused with %d", refusal.Code))
	return &proxy.RequestEffect{Fault: f.env.Report.Name(), Refuse: refusal}
}

// fires counts a match and says whether the fault fires at it. Every match
// draws, whether or not it can still fire, so that the limit on the number of
// firings does not shift the draws.
func (f *fault) fires() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.matches++
	fires := true
	switch p := &f.params; {
	case p.Nth != nil:
		fires = f.matches == *p.Nth
	case p.Every != nil:
		fires = f.matches%*p.Every == 0
	case p.Probability != nil:
		fires = f.env.Rand.Float64() < *p.Probability
	}
	if !fires || (f.params.Times > 0 && f.fired >= f.params.Times) {
		return false
	}
	f.fired++
	return true
}

// match says whether a request is one of those that the fault is aimed at.
func (p *Params) match(request *history.Request) bool {
	return request.Verb == p.Verb &&
		request.Resource == p.Resource &&
		request.Subresource == p.Subresource &&
		matchGlob(p.Namespace, request.Namespace) &&
		matchGlob(p.Name, nameOf(request))
}

// matchGlob matches a glob that is known to be well-formed; none matches all.
func matchGlob(glob, name string) bool {
	if glob == "" {
		return true
	}
	matched, _ := path.Match(glob, name)
	return matched
}

// nameOf is the name of the object that a request is about. A create may leave
// it to the API server to complete.
func nameOf(request *history.Request) string {
	switch {
	case request.Name != "" || request.Object == nil:
		return request.Name
	case request.Object.Name != "":
		return request.Object.Name
	}
	return request.Object.GenerateName
}

// about names the object of a request as far as it has a name.
func about(request *history.Request) *history.Ref {
	return &history.Ref{Resource: request.Resource, Namespace: request.Namespace, Name: nameOf(request)}
}
