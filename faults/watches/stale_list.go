package watches

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Stale is the fault type stale-list: list requests return the objects as they were when the fault
// was injected.
var Stale = faults.Type{
	Name: "stale-list",
	Description: "The API server answers the subject's lists of one resource with the state at the time of the injection, as if its watch cache lagged. " +
		"The fault does not change lists that request the latest state or a newer version.",
	Healing: "Lists return the current state. If the subject received an outdated list before, its next watch delivers the missing events.",
	Params: []faults.Param{
		resourceParam("The resource of the lists, with its API group. The proxy refuses streaming lists with a 422, like an API server that does not support them, so that the subject sends a list."),
	},
	New:    NewStale,
	Sample: sampleStale,
}

// StaleParams contains the parameters that a scenario sets for a stale-list fault. The Params
// field of [Stale] documents each parameter.
type StaleParams struct {
	Resource string `yaml:"resource"`
}

// NewStale returns a stale-list fault with the given parameters, or an error if a parameter
// is invalid.
func NewStale(params faults.Params) (faults.Fault, error) {
	var p StaleParams
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := faults.Resource(params, p.Resource); err != nil {
		return nil, err
	}
	return &stale{resource: p.Resource}, nil
}

// stale is a fault of type stale-list. It makes the API server answer lists at an old
// resourceVersion.
type stale struct {
	faults.Registration
	resource string
	env      *faults.Env
	version  history.Version // resourceVersion of the cluster when the fault was injected

	mu    sync.Mutex
	lists int // number of list requests that the API server answered at this version
}

func (s *stale) Inject(ctx context.Context, env *faults.Env) error {
	s.env = env
	// The metadata of any list contains the current resourceVersion of the whole cluster, so a
	// list of namespaces is enough.
	now, err := env.Admin.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("reading the current resourceVersion of the cluster: %w", err)
	}
	if s.version, err = history.ParseVersion(now.ResourceVersion); err != nil {
		return fmt.Errorf("reading the current resourceVersion of the cluster: %w", err)
	}
	s.Remove = env.Interceptor.OnRequest(s.match)
	return nil
}

func (s *stale) Summary() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("answered %s at resourceVersion %d", faults.Counted(s.lists, "list"), s.version)
}

// match makes the API server answer a list request at the resourceVersion s.version. It refuses a
// streaming list, so that the controller under test sends a normal list request instead. It
// returns nil for all other requests, which then stay unchanged.
func (s *stale) match(request *history.Request) *interceptor.RequestEffect {
	if request.Resource != s.resource {
		return nil
	}
	query, err := url.ParseQuery(request.Query)
	if err != nil || !s.mayAnswerAtVersion(query) {
		return nil
	}
	ref := &history.Ref{Resource: s.resource, Namespace: request.Namespace, Version: s.version}
	switch {
	case request.Verb == "list":
		s.mu.Lock()
		s.lists++
		s.mu.Unlock()
		s.env.Report.Fired(request.ID, ref, fmt.Sprintf("answered the list at resourceVersion %d", s.version))
		return &interceptor.RequestEffect{Fault: s.env.Report.Name(), ListAt: s.version}
	case request.Verb == "watch" && query.Get("sendInitialEvents") == "true":
		s.env.Report.Fired(request.ID, ref, "refused a streaming list with 422, so that the subject sends a list")
		return &interceptor.RequestEffect{Fault: s.env.Report.Name(), Refuse: &interceptor.Refusal{Code: 422}}
	}
	return nil
}

// mayAnswerAtVersion reports whether an API server with an outdated watch cache could answer
// this query at s.version.
//
// The result is false for a list without a resourceVersion, because such a list asks for the latest
// state. The result is true for a streaming list without a resourceVersion. The method match then
// refuses the streaming list, so that the controller under test sends a normal list.
func (s *stale) mayAnswerAtVersion(query url.Values) bool {
	asked := query.Get("resourceVersion")
	version, err := history.ParseVersion(asked)
	switch {
	case err != nil || query.Get("continue") != "" || query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact):
		return false
	case asked == "":
		return query.Get("sendInitialEvents") == "true"
	case version != 0 && query.Has("limit") && !query.Has("resourceVersionMatch"):
		return false // with a limit and no resourceVersionMatch, the API server returns exactly this version
	}
	return version <= s.version
}
