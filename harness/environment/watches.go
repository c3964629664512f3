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

// subjectWatches observes in the history which resources the replicas of the subject watch,
// and which leader-election identities they use. Its methods are safe for concurrent use.
type subjectWatches struct {
	// recording is true if there is a history.
	recording bool

	mu sync.Mutex
	// required are the resources that the leader must watch before the subject is ready. A
	// leader with fewer watches is still starting. It is empty if the history has no requests
	// of the subject.
	required []string
	// pending are the watch requests without a response, by request ID. watched are the
	// resources that each replica watches. holders maps the leader-election identity of a
	// replica to its name. All three contain only running replicas.
	pending map[uint64]watchRequest
	watched map[string]map[string]bool
	holders map[string]string
}

// watchRequest is a watch request of a replica.
type watchRequest struct{ replica, resource string }

func newSubjectWatches() *subjectWatches {
	return &subjectWatches{
		pending: map[uint64]watchRequest{}, watched: map[string]map[string]bool{}, holders: map[string]string{},
	}
}

// require sets the kinds that the leader must watch.
func (w *subjectWatches) require(kinds []kube.Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range kinds {
		w.required = append(w.required, k.Resource())
	}
}

// observe updates the state from the next record.
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

const leaseResource = "leases.coordination.k8s.io"

// observeLease learns the leader-election identity of a replica from its writes to the
// lease.
func (w *subjectWatches) observeLease(r *history.Request) {
	if r.Object == nil || (r.Verb != "create" && r.Verb != "update") {
		return
	}
	var lease struct {
		Spec struct {
			HolderIdentity string `json:"holderIdentity"`
		} `json:"spec"`
	}
	// A lease that cannot be decoded names no holder.
	if err := json.Unmarshal(r.Object.Body, &lease); err == nil && lease.Spec.HolderIdentity != "" {
		w.holders[lease.Spec.HolderIdentity] = r.Subject
	}
}

// observeProcess removes the state of a replica that has ended.
func (w *subjectWatches) observeProcess(p *history.Process) {
	switch p.Event {
	case history.ProcessStarted, history.ProcessPaused, history.ProcessResumed:
		return
	}
	delete(w.watched, p.Name)
	maps.DeleteFunc(w.pending, func(_ uint64, r watchRequest) bool { return r.replica == p.Name })
	maps.DeleteFunc(w.holders, func(_, replica string) bool { return replica == p.Name })
}

// holder returns the running replica that uses a leader-election identity, "" if there is
// none.
func (w *subjectWatches) holder(identity string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holders[identity]
}

// missing returns the required resources that the leader does not watch. The leader is the
// replica with the most watches; the other replicas have none.
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

// SubjectWatches reports whether a replica of the subject watches all resources that its
// controllers need. It is true for a subject whose requests are not recorded.
func (e *Environment) SubjectWatches() bool { return len(e.watches.missing()) == 0 }

// watchPollInterval is the interval at which wait looks for new watches.
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
