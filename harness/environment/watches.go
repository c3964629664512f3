package environment

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// subjectWatches contains, for each running replica of the subject, its leader-election
// identity and the resources that it watches. It derives both from the records of the history.
// Its methods are safe for concurrent use.
type subjectWatches struct {
	// recording is true if there is a history. It is set before the first replica starts.
	recording bool

	mu sync.Mutex
	// required lists the resources that the leader must watch before the subject is ready. It is
	// empty if there is no history or no fault proxy, because the requests of the subject are then
	// unknown.
	required []string
	// pending maps request IDs to the watch requests that have no response yet.
	pending map[uint64]watchRequest
	// watched maps the name of a replica to the set of resources that it watches.
	watched map[string]map[string]bool
	// holders maps leader-election identities to the names of replicas.
	holders map[string]string
	// leader is the replica that last wrote its identity to a Lease, or "" if it has ended.
	leader string
}

// watchRequest is one watch request: the name of the replica, and the resource that it watches.
type watchRequest struct{ replica, resource string }

// newSubjectWatches returns a subjectWatches without replicas and without required resources.
func newSubjectWatches() *subjectWatches {
	return &subjectWatches{
		pending: map[uint64]watchRequest{}, watched: map[string]map[string]bool{}, holders: map[string]string{},
	}
}

// require adds the resources of the given kinds to the resources that the leader must watch.
func (w *subjectWatches) require(kinds []kube.Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range kinds {
		w.required = append(w.required, k.Resource())
	}
}

// observe updates the watches and the leader-election identities from the next record of the
// history.
func (w *subjectWatches) observe(r *history.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case r.Request != nil && r.Request.Verb == "watch":
		w.pending[r.Request.ID] = watchRequest{r.Request.Subject, r.Request.Resource}
	case r.Request != nil && r.Request.Resource == leaseResource:
		w.observeLease(r.Request)
	case r.Response != nil:
		request, ok := w.pending[r.Response.ID]
		delete(w.pending, r.Response.ID)
		if !ok || !r.Response.OK() {
			return
		}
		if w.watched[request.replica] == nil {
			w.watched[request.replica] = map[string]bool{}
		}
		w.watched[request.replica][request.resource] = true
	case r.Process != nil:
		w.observeProcess(r.Process)
	}
}

// leaseResource is the resource of Lease objects, in the form that records contain.
const leaseResource = "leases.coordination.k8s.io"

// observeLease stores the leader-election identity that a replica writes to a Lease.
func (w *subjectWatches) observeLease(r *history.Request) {
	if r.Object == nil || (r.Verb != "create" && r.Verb != "update") {
		return
	}
	var lease struct {
		Spec struct {
			HolderIdentity string `json:"holderIdentity"`
		} `json:"spec"`
	}
	// Ignore a Lease that cannot be decoded: it contains no identity.
	if err := json.Unmarshal(r.Object.Body, &lease); err == nil && lease.Spec.HolderIdentity != "" {
		w.holders[lease.Spec.HolderIdentity] = r.Subject
		w.leader = r.Subject
	}
}

// observeProcess removes the watches and the identity of a replica that has ended.
func (w *subjectWatches) observeProcess(p *history.Process) {
	switch p.Event {
	case history.ProcessStarted, history.ProcessPaused, history.ProcessResumed:
		return
	}
	delete(w.watched, p.Name)
	if w.leader == p.Name {
		w.leader = ""
	}
	maps.DeleteFunc(w.pending, func(_ uint64, r watchRequest) bool { return r.replica == p.Name })
	maps.DeleteFunc(w.holders, func(_, replica string) bool { return replica == p.Name })
}

// lastWriter returns the running replica that last wrote its identity to a Lease, or "".
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

// missing returns the required resources that the leader does not watch yet.
//
// A replica without the lease watches nothing. missing therefore takes the replica that watches
// the most required resources for the leader.
func (w *subjectWatches) missing() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	least := w.required
	for _, watching := range w.watched {
		var missing []string
		for _, resource := range w.required {
			if !watching[resource] {
				missing = append(missing, resource)
			}
		}
		if len(missing) < len(least) {
			least = missing
		}
	}
	return least
}

// SubjectWatches reports whether one replica of the subject watches all resources that its
// controllers need. If the history does not contain the requests of the subject, it returns
// true.
func (e *Environment) SubjectWatches() bool { return len(e.watches.missing()) == 0 }

// watchPollInterval is the interval at which wait checks the watches of the leader.
const watchPollInterval = 10 * time.Millisecond

// wait waits until the leader watches all required resources.
func (w *subjectWatches) wait(ctx context.Context) error {
	err := cluster.Poll(ctx, watchPollInterval, "the watches of the subject", func(context.Context) error {
		if missing := w.missing(); len(missing) > 0 {
			return fmt.Errorf("the subject holds the lease but does not watch %s", strings.Join(missing, ", "))
		}
		return nil
	})
	return err
}
