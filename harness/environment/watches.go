package environment

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// subjectWatches stores which resources each running replica of the controllers under test
// watches, and which replica leads. It gets this information from the requests in the history. Its
// methods are safe for concurrent use.
type subjectWatches struct {
	// recording is true if there is a history. The field is set before the first replica starts.
	recording bool

	mu sync.Mutex
	// required lists the resources that the leader must watch before the subject (the controllers
	// under test) is ready. It is empty without a history or fault proxy, because the subject's
	// requests are then unknown.
	required []string
	// pending contains the watch requests that have no response yet, by request ID.
	pending map[uint64]watchRequest
	// watched contains what each replica has watched since its start. open contains the watches that have
	// not ended, by request ID.
	watched map[watchRequest]bool
	open    map[uint64]watchRequest
	// lists contains the resources of the list requests that have no response yet, by request ID. denied
	// contains the lists and watches that RBAC denied at the last attempt, such as "list pods".
	lists  map[uint64]string
	denied map[string]bool
	// holders maps the leader-election identity of each running replica to the replica's name.
	holders map[string]string
	// leader is the replica that last wrote its identity to a Lease. It is "" if that replica has
	// ended.
	leader string
}

// watchRequest is one watch request in the history. It has the name of the replica that sent the
// request, and the watched resource.
type watchRequest struct{ replica, resource string }

// newSubjectWatches returns a subjectWatches for which no replica has started and no resource is
// required.
func newSubjectWatches() *subjectWatches {
	return &subjectWatches{
		pending: map[uint64]watchRequest{}, watched: map[watchRequest]bool{}, open: map[uint64]watchRequest{}, holders: map[string]string{},
		lists: map[uint64]string{}, denied: map[string]bool{},
	}
}

// require adds the resources of the given Kinds to the resources that the leader must watch.
func (w *subjectWatches) require(kinds []kube.Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range kinds {
		w.required = append(w.required, k.Resource())
	}
}

// observe reads the next record of the history. If the record is about a watch, a Lease or a
// process, observe updates which replica leads and which resources each replica watches.
func (w *subjectWatches) observe(r *history.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case r.Request != nil && r.Request.Verb == "watch":
		w.pending[r.Request.ID] = watchRequest{r.Request.Subject, r.Request.Resource}
	case r.Request != nil && r.Request.Verb == "list":
		w.lists[r.Request.ID] = r.Request.Resource
	case r.Request != nil && r.Request.Resource == leaseResource:
		w.observeLease(r.Request)
	case r.Response != nil:
		request, ok := w.pending[r.Response.ID]
		if ok {
			w.recordDenial("watch "+request.resource, r.Response)
		} else if resource, ok := w.lists[r.Response.ID]; ok {
			w.recordDenial("list "+resource, r.Response)
		}
		delete(w.pending, r.Response.ID)
		delete(w.lists, r.Response.ID)
		if ok && r.Response.OK() {
			w.open[r.Response.ID], w.watched[request] = request, true
		}
	case r.WatchClosed != nil:
		delete(w.open, r.WatchClosed.ID)
	case r.Process != nil:
		w.observeProcess(r.Process)
	}
}

// leaseResource is the resource of Lease objects, in the form in which the history names resources.
const leaseResource = "leases.coordination.k8s.io"

// observeLease stores the leader-election identity of the replica that sent r, if r writes a Lease.
// The replica with the latest such write then counts as the leader.
func (w *subjectWatches) observeLease(r *history.Request) {
	if r.Object == nil || (r.Verb != "create" && r.Verb != "update") {
		return
	}
	var lease struct {
		Spec struct {
			HolderIdentity string `json:"holderIdentity"`
		} `json:"spec"`
	}
	// A Lease that cannot be decoded contains no identity.
	if err := json.Unmarshal(r.Object.Body, &lease); err == nil && lease.Spec.HolderIdentity != "" {
		w.holders[lease.Spec.HolderIdentity] = r.Subject
		w.leader = r.Subject
	}
}

// observeProcess forgets the watches and the lease of a replica if p says that the replica has
// ended.
func (w *subjectWatches) observeProcess(p *history.Process) {
	switch p.Event {
	case history.ProcessStarted, history.ProcessPaused, history.ProcessResumed:
		return
	}
	if w.leader == p.Name {
		w.leader = ""
	}
	ofReplica := func(_ uint64, r watchRequest) bool { return r.replica == p.Name }
	maps.DeleteFunc(w.pending, ofReplica)
	maps.DeleteFunc(w.open, ofReplica)
	maps.DeleteFunc(w.watched, func(r watchRequest, _ bool) bool { return r.replica == p.Name })
	maps.DeleteFunc(w.holders, func(_, replica string) bool { return replica == p.Name })
}

// lastWriter returns the replica that last wrote its identity to a Lease. It returns "" if that
// replica has ended, or if there is none.
func (w *subjectWatches) lastWriter() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leader
}

// holder returns the name of the running replica that uses a leader-election identity. It returns
// "" if no running replica uses the identity.
func (w *subjectWatches) holder(identity string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holders[identity]
}

// missing returns the required resources that the leader has not watched since its start. It is empty if
// the leader has watched all of them.
func (w *subjectWatches) missing() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.missingIn(maps.Keys(w.watched))
}

// closed returns the required resources that the leader does not watch now.
func (w *subjectWatches) closed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.missingIn(maps.Values(w.open))
}

// missingIn returns the required resources that are missing in the watches of the leader.
//
// Only the leader watches resources. Therefore the replica that watches the most required
// resources counts as the leader.
func (w *subjectWatches) missingIn(watches iter.Seq[watchRequest]) []string {
	watched := map[string]map[string]bool{} // by replica name and resource
	for r := range watches {
		if watched[r.replica] == nil {
			watched[r.replica] = map[string]bool{}
		}
		watched[r.replica][r.resource] = true
	}
	least := w.required
	for _, resources := range watched {
		missing := slices.DeleteFunc(slices.Clone(w.required), func(resource string) bool { return resources[resource] })
		if len(missing) < len(least) {
			least = missing
		}
	}
	return least
}

// resources returns the resources that some replica has watched since its start, sorted.
func (w *subjectWatches) resources() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for r := range w.watched {
		all = append(all, r.resource)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// SubjectWatches reports whether the leader has watched all resources that its controllers need.
// Without a history of the requests of these controllers, SubjectWatches returns true.
func (e *Environment) SubjectWatches() bool { return len(e.watches.missing()) == 0 }

// SubjectWatchesNow is like SubjectWatches, but watches that have ended do not count.
func (e *Environment) SubjectWatchesNow() bool { return len(e.watches.closed()) == 0 }

// watchPollInterval is the interval at which wait checks which resources the leader watches.
const watchPollInterval = 10 * time.Millisecond

// recordDenial records whether RBAC denied the last request of this kind, such as "list pods". The API server
// may know a new role only after some requests.
func (w *subjectWatches) recordDenial(request string, r *history.Response) {
	if r.Denied {
		w.denied[request] = true
	} else {
		delete(w.denied, request)
	}
}

// noticeAfter is the time after which wait says what it waits for.
const noticeAfter = 5 * time.Second

// deniedText returns the end of an error message about the lists and watches that RBAC has denied. It
// returns "" if there are none.
func (w *subjectWatches) deniedText() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.denied) == 0 {
		return ""
	}
	return "; the API server denied " + strings.Join(slices.Sorted(maps.Keys(w.denied)), ", ") + ": add these permissions to a role of the subject"
}

// wait waits until the leader watches all required resources. If ctx ends first, the error names
// the missing and the watched resources, and the requests that RBAC has denied.
//
// The argument ended is a callback that returns an error if the subject has ended unexpectedly. wait then
// returns this error at once. After noticeAfter, wait passes what is missing to the callback notice.
func (w *subjectWatches) wait(ctx context.Context, ended func() error, notice func(text string)) error {
	polls := 0
	err := cluster.Poll(ctx, watchPollInterval, "the subject to open its watches", func(context.Context) error {
		if missing := w.missing(); len(missing) > 0 && ended() == nil {
			err := fmt.Errorf("no replica of the subject watches %s; it watches %s%s", strings.Join(missing, ", "), cmp.Or(strings.Join(w.resources(), ", "), "nothing"), w.deniedText())
			if polls++; polls == int(noticeAfter/watchPollInterval) {
				notice(err.Error())
			}
			return err
		}
		return nil
	})
	return cmp.Or(ended(), err)
}
