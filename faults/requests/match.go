package requests

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Match contains the parameters that select requests. The fault applies to the selected requests.
//
// The fields from Verb to Owner describe the matching requests by their content. The fields Nth,
// Every, Probability and Times then say at which of the matching requests the fault fires. Nth,
// Every and Probability are nil if the scenario omits them.
type Match struct {
	Verb        string   `yaml:"verb"`
	Resource    string   `yaml:"resource"`
	Subresource string   `yaml:"subresource"`
	Namespace   string   `yaml:"namespace"`
	Name        string   `yaml:"name"`
	Owner       string   `yaml:"owner"`
	Nth         *int     `yaml:"nth"`
	Every       *int     `yaml:"every"`
	Probability *float64 `yaml:"probability"`
	Times       int      `yaml:"times"`
}

// countMax is the largest permitted value of [Match.Nth], [Match.Every] and [Match.Times].
const countMax = 1_000_000

// withMatch returns the documentation of all parameters of a fault type that selects requests. The
// result begins with the parameters in [Match]. The parameters in the argument own, which only this
// fault type has, follow. The argument verbs lists the verbs that the fault type supports.
func withMatch(verbs []string, own ...faults.Param) []faults.Param {
	return append([]faults.Param{
		{Name: "verb", Description: "The verb of the requests.", Bounds: "one of " + strings.Join(verbs, ", ")},
		{Name: "resource", Description: "The resource of the requests, with its API group. The resource may also be a custom resource that the scenario's workload creates.", Bounds: faults.ResourceBounds},
		{Name: "subresource", Description: "The subresource of the requests. Without this parameter, requests for a subresource do not match.", Bounds: "such as status", Default: "none"},
		{Name: "namespace", Description: "A glob for the namespace of the requests.", Bounds: "a glob (* ? [a-z])", Default: "any namespace"},
		{Name: "name", Description: "A glob for the object's name. A create without a name matches by its generateName.", Bounds: "a glob (* ? [a-z])", Default: "any name"},
		{Name: "owner", Description: "A glob for the kind and name of the controlling owner of the object. The owner is read from the request body, or else from the version of the object that the subject received last.", Bounds: "such as ReplicaSet/web-*", Default: "any owner, or none"},
		{Name: "nth", Description: "The fault fires at this matching request only, counted from 1.", Bounds: "1 to 1000000", Default: "every match"},
		{Name: "every", Description: "The fault fires at each multiple of this number of matching requests: with 3, at the 3rd, the 6th and so on.", Bounds: "1 to 1000000", Default: "every match"},
		{Name: "probability", Description: "The fault fires at each matching request with this probability.", Bounds: "greater than 0, at most 1", Default: "every match"},
		{Name: "times", Description: "The maximum number of firings.", Bounds: "0 to 1000000", Default: "0 (no limit)"},
	}, own...)
}

// validate returns an error for each invalid parameter, with its position in the scenario. It
// returns nil if all parameters are valid. The argument verbs lists the verbs that the fault type
// supports.
func (m *Match) validate(params faults.Params, verbs []string) error {
	name, owner := faults.Glob(params, "name", m.Name), faults.OwnerGlob(params, m.Owner)
	var subresource error
	if err := cmp.Or(scenario.CheckSubresource(m.Resource, m.Subresource), scenario.CheckSubresourceVerb(m.Subresource, m.Verb)); err != nil {
		subresource = params.Errorf("subresource", "%w", err)
	}
	if slices.Contains([]string{"list", "watch", "deletecollection"}, m.Verb) {
		if m.Name != "" {
			name = params.Errorf("name", "a %s request contains no object name; remove this field", m.Verb)
		}
		if m.Owner != "" {
			owner = params.Errorf("owner", "a %s request contains no object, so it has no owner; remove this field", m.Verb)
		}
	}
	return scenario.JoinErrors(
		faults.OneOf(params, "verb", m.Verb, verbs),
		faults.Resource(params, m.Resource),
		faults.Glob(params, "namespace", m.Namespace),
		subresource, name, owner,
		m.validateTriggers(params),
	)
}

// validateTriggers returns an error for each invalid field among m.Times, m.Nth, m.Every and
// m.Probability. These parameters say at which of the matching requests the fault fires. A scenario
// may set at most one of m.Nth, m.Every and m.Probability.
func (m *Match) validateTriggers(params faults.Params) error {
	errs := []error{faults.Between(params, "times", m.Times, 0, countMax)}
	triggers := 0
	if m.Probability != nil {
		triggers++
		if !(*m.Probability > 0 && *m.Probability <= 1) {
			errs = append(errs, params.Errorf("probability", "%v is out of bounds; expected more than 0, up to 1", *m.Probability))
		}
	}
	for _, count := range []struct {
		field string
		value *int
	}{{"nth", m.Nth}, {"every", m.Every}} {
		if count.value == nil {
			continue
		}
		triggers++
		errs = append(errs, faults.Between(params, count.field, *count.value, 1, countMax))
	}
	if m.Nth != nil && triggers == 1 && m.Times > 1 {
		errs = append(errs, params.Errorf("times", "found %d beside nth, with which the fault fires once; remove this field, or write every instead of nth", m.Times))
	}
	if triggers > 1 {
		errs = append(errs, params.Errorf("", "found %d of the fields nth, every and probability; set at most one of them", triggers))
	}
	return scenario.JoinErrors(errs...)
}

// matches reports whether a request has the properties that the fields of m from Verb to Owner
// describe. The argument controller is a function that returns the owner in the controllerRef of
// the request's object, or nil if the owner is unknown.
func (m *Match) matches(request *history.Request, controller func(*history.Request) *history.Owner) bool {
	return request.Verb == m.Verb &&
		request.Resource == m.Resource &&
		request.Subresource == m.Subresource &&
		history.MatchGlob(m.Namespace, request.Namespace) &&
		history.MatchGlob(m.Name, request.ObjectName()) &&
		(m.Owner == "" || history.MatchOwner(m.Owner, controller(request)))
}

// selection counts the matching requests and decides at which of them the fault fires.
type selection struct {
	matcher Match

	mu             sync.Mutex // the fault proxy calls the fault from many goroutines
	matches, fired int        // how many requests matched, and at how many the fault fired
}

// count counts a matching request, and decides whether the fault fires at this request. If so, the
// result fires is true. The results effect and detail are then the results of effectOf: the effect
// on the request, and the text for the history record.
//
// count calls effectOf for every matching request, even after the fault has fired s.matcher.Times
// times. A change of Match.Times therefore does not change the random numbers of later requests.
func (s *selection) count(random *rand.Rand, effectOf effectFunc) (effect interceptor.RequestEffect, detail string, fires bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.matches++
	fires = true
	switch m := &s.matcher; {
	case m.Nth != nil:
		fires = s.matches == *m.Nth
	case m.Every != nil:
		fires = s.matches%*m.Every == 0
	case m.Probability != nil:
		fires = random.Float64() < *m.Probability
	}
	effect, detail = effectOf(random)
	if !fires || (s.matcher.Times > 0 && s.fired >= s.matcher.Times) {
		return interceptor.RequestEffect{}, "", false
	}
	s.fired++
	return effect, detail, true
}
