package check

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// rbacDeniedCheck demands that the controllers under test have the RBAC permissions for the
// requests that they repeat. It examines the requests that the API server's authorizer refused.
//
// The check groups requests by verb, resource, subresource and namespace. A group violates the
// guarantee if at least two of its requests were refused and none succeeded. If some requests of a
// group succeed, its refusals are transient, for example because the API server had just started.
//
// The check also ignores each refusal within 5 s of a transient one. An authorizer that is not
// ready refuses everything.
//
// The check reports a violation at the end of the run, with the first refused request.
var rbacDeniedCheck = Check{
	ID:            "rbac-denied",
	Guarantee:     "A controller has the RBAC permissions for the requests that it repeats.",
	Contract:      "Kubernetes documentation, Using RBAC Authorization",
	Property:      Safety,
	Scope:         general,
	ExercisedWhen: "A request of the subject succeeds, or the authorizer of the API server refuses it.",
	Ignores:       "A single refused request, which may be a probe for an optional API. Refused requests if another request with the same verb, resource, subresource and namespace succeeded. Refusals within 5 seconds of the refusal of another request that the authorizer allows at other times, as after a start of the API server. Responses that a fault made. Refusals by admission control. Permissions that the subject has and never uses. Histories of earlier versions of gauntlet, which lack the field denied.",
	New:           newRBACDeniedChecker,
}

// rbacDeniedChecker reports groups of requests that the authorizer refused each time, such as all
// lists of pods.
type rbacDeniedChecker struct {
	findings
	requests map[uint64]*history.Request // requests without a response, by ID
	allowed  map[permission]bool         // the permissions of requests that succeeded
	denied   map[permission]*denials     // the refused requests
	inOrder  []*denials                  // the values of denied, sorted by their first refusal
}

// permission consists of the verb, resource, subresource and namespace that an RBAC role must
// allow for a request.
type permission struct{ verb, resource, subresource, namespace string }

// denials contains the refused requests that need the same permission, such as to list pods.
type denials struct {
	permission
	request *history.Request // the first refused request
	at      []recordTime     // when each request was refused
}

// transientSpan is how long before or after a transient refusal the check ignores all other
// refusals. A refusal is transient if another request that needs the same permission succeeds.
const transientSpan = 5 * time.Second

func newRBACDeniedChecker(Settings) Checker {
	return &rbacDeniedChecker{
		requests: map[uint64]*history.Request{},
		allowed:  map[permission]bool{}, denied: map[permission]*denials{},
	}
}

func (checker *rbacDeniedChecker) Observe(m *Model, r *history.Record) {
	switch {
	case r.Request != nil && r.Request.Resource != "":
		checker.requests[r.Request.ID] = r.Request
	case r.Response != nil:
		if request := checker.requests[r.Response.ID]; request != nil {
			delete(checker.requests, r.Response.ID)
			checker.answer(m, request, r.Response)
		}
	case processStarts(r): // the requests of the former process get no response
		maps.DeleteFunc(checker.requests, func(_ uint64, request *history.Request) bool { return request.Subject == r.Process.Name })
	case r.Phase != nil && r.Phase.Name == history.PhaseEnd:
		checker.end()
	}
}

// answer stores whether a request succeeded or the authorizer refused it. It ignores other
// failures.
func (checker *rbacDeniedChecker) answer(m *Model, request *history.Request, response *history.Response) {
	needed := permission{request.Verb, request.Resource, request.Subresource, request.Namespace}
	switch {
	case response.OK():
		checker.allowed[needed] = true
	case !response.Denied || response.Fault != "":
		return
	default:
		d := checker.denied[needed]
		if d == nil {
			d = &denials{permission: needed, request: request}
			checker.denied[needed] = d
			checker.inOrder = append(checker.inOrder, d)
		}
		d.at = append(d.at, recordTime{at: m.now, seq: m.seq})
	}
	checker.exercised++
}

// end reports each permission that the authorizer refused at least twice and never granted. It does
// not count refusals within transientSpan (5 s) of a transient one.
func (checker *rbacDeniedChecker) end() {
	var transient []recordTime
	for _, d := range checker.inOrder {
		if checker.allowed[d.permission] {
			transient = append(transient, d.at...)
		}
	}
	for _, d := range checker.inOrder {
		lasting := slices.DeleteFunc(d.at, func(refused recordTime) bool {
			return slices.ContainsFunc(transient, func(t recordTime) bool { return (refused.at - t.at).Abs() <= transientSpan })
		})
		if checker.allowed[d.permission] || len(lasting) < 2 {
			continue
		}
		checker.addViolation(func() Evidence {
			return Evidence{
				Summary:  fmt.Sprintf("the API server refused %d requests of %s to %s", len(lasting), d.request.Subject, d.permission),
				Expected: fmt.Sprintf("an RBAC role of the subject that allows %s", d.permission),
				Object:   requestRef(d.request),
				At:       lasting[0].at,
				Records:  []int64{lasting[0].seq},
			}
		})
	}
}

// String formats the permission for the evidence of a violation, such as "list pods in namespace
// default".
func (p permission) String() string {
	name := p.verb + " " + p.resource
	if p.subresource != "" {
		name += "/" + p.subresource
	}
	if p.namespace == "" {
		return name + " at the cluster scope"
	}
	return name + " in namespace " + p.namespace
}
