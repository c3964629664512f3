// Package ordering contains the fault that changes the order of messages. The messages are the
// requests of the subject (the controllers under test), their responses, and watch events.
package ordering

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Random is the fault type random-order. It orders messages by random priorities, which change a
// few times at random.
//
// The method is probabilistic concurrency testing: a bug that depends on the order of few messages
// appears with a probability that does not shrink exponentially with the number of messages. See
// Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic Guarantees
// of Finding Bugs (ASPLOS 2010).
var Random = faults.Type{
	Name: "random-order",
	Description: "The fault proxy passes on one message at a time: a request of the subject, a response or a watch event. " +
		"The requests of a replica with one verb, resource and subresource form a queue, as do their responses, and the watch events of one resource. " +
		"Each queue has a random priority. If several queues have waiting messages, the oldest message of the queue with the highest priority is next. " +
		"The order within a queue does not change. A message that has waited for the time `patience` is next, whatever its queue. Messages about Leases and Events pass at once, as do the beginnings of watches. Requests that another fault refuses do not wait.",
	Healing: "The proxy passes on all waiting messages at once.",
	Params: []faults.Param{
		{Name: "interval", Description: "The time between two messages. Messages that arrive in this time compete with those that wait.", Bounds: "1ms to 1s", Default: "5ms"},
		{Name: "patience", Description: "The longest time that a message waits while others pass before it.", Bounds: "1ms to 10m", Default: "2s"},
		{Name: "changes", Description: "How often at most a queue gets the lowest priority instead of its own, each time at a random message.", Bounds: "0 to 1000", Default: "3"},
		{Name: "among", Description: "The changes are spread over the first messages, up to this number.", Bounds: "1 to 1000000", Default: "300"},
	},
	New:                newRandom,
	NotGeneratedReason: "only the profile `orders` has this fault, for the whole workload",
}

// RandomParams contains the parameters that a scenario sets for a random-order fault. The Params
// field of [Random] documents each parameter.
type RandomParams struct {
	Interval time.Duration `yaml:"interval"`
	Patience time.Duration `yaml:"patience"`
	Changes  int           `yaml:"changes"`
	Among    int           `yaml:"among"`
}

const (
	intervalMin = time.Millisecond
	intervalMax = time.Second
	patienceMin = time.Millisecond
	patienceMax = 10 * time.Minute
	changesMax  = 1000
	amongMax    = 1_000_000
)

// newRandom returns a random-order fault with the given parameters, or an error if a parameter is
// invalid.
func newRandom(params faults.Params) (faults.Fault, error) {
	p := RandomParams{Interval: 5 * time.Millisecond, Patience: 2 * time.Second, Changes: 3, Among: 300}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if err := scenario.JoinErrors(
		faults.Between(params, "interval", p.Interval, intervalMin, intervalMax),
		faults.Between(params, "patience", p.Patience, patienceMin, patienceMax),
		faults.Between(params, "changes", p.Changes, 0, changesMax),
		faults.Between(params, "among", p.Among, 1, amongMax),
	); err != nil {
		return nil, err
	}
	return &random{params: p, arrived: make(chan struct{}, 1)}, nil
}

// random is a fault of type random-order.
type random struct {
	faults.Registration
	faults.Background
	params  RandomParams
	env     *faults.Env
	arrived chan struct{} // receives a value after a message has arrived

	mu       sync.Mutex
	queues   []*queue     // in the order of their first messages
	changeAt map[int]bool // numbers of the messages at which a priority changes
	lowest   float64      // lowest priority of all queues so far
	messages int          // number of messages that have arrived
	passed   int          // number of messages that have passed
	overtook int          // number of messages that have passed before an older one
	ended    bool         // true if messages pass at once
}

// queue contains the waiting messages whose order does not change.
type queue struct {
	key      queueKey
	priority float64
	waiting  []*message // the oldest first
	late     bool       // true if a newer message of another queue has passed before one of this queue
}

// queueKey identifies a queue. The verb is that of the request; for watch events, it is "watch".
type queueKey struct {
	replica, verb, resource, subresource string
	part                                 interceptor.MessagePart
}

// message is a message that waits until it may pass.
type message struct {
	number  int // position in the order of arrival
	arrived time.Time
	turn    chan struct{} // closed when the message may pass
	id      uint64        // ID of the request
	object  history.Ref
}

func (f *random) Inject(ctx context.Context, env *faults.Env) error {
	f.env = env
	f.changeAt = map[int]bool{}
	for range f.params.Changes {
		f.changeAt[1+env.Rand.IntN(f.params.Among)] = true
	}
	f.Begin(ctx, func(context.Context) { f.run() })
	f.Remove = env.Interceptor.OnMessage(f.wait)
	return nil
}

// Heal lets all waiting messages pass. Removing the fault waits for them.
func (f *random) Heal(ctx context.Context) error {
	err := f.End(ctx)
	f.mu.Lock()
	f.ended = true
	for _, q := range f.queues {
		for _, m := range q.waiting {
			close(m.turn)
		}
		q.waiting = nil
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return f.Registration.Heal(ctx)
}

func (f *random) Summary() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("passed on %s in %s, %d of them before an older one", faults.Counted(f.passed, "message"), faults.Counted(len(f.queues), "queue"), f.overtook)
}

// wait waits until a message may pass, or until its request is canceled.
func (f *random) wait(ctx context.Context, m interceptor.Message) {
	if passesAtOnce(m) {
		return
	}
	waiting, q := f.add(m)
	if waiting == nil {
		return
	}
	select {
	case <-waiting.turn:
	case <-ctx.Done():
		f.mu.Lock()
		q.waiting = slices.DeleteFunc(q.waiting, func(other *message) bool { return other == waiting })
		f.mu.Unlock()
	}
}

// passesAtOnce reports whether the fault ignores a message. A controller must renew its lease in
// time, and nothing depends on Events. A request without a resource is about the API server itself.
func passesAtOnce(m interceptor.Message) bool {
	switch m.Request.Resource {
	case "", "leases.coordination.k8s.io", "events", "events.events.k8s.io":
		return true
	}
	return m.Request.Verb == "watch" && m.Part != interceptor.EventMessage
}

// add appends a message to its queue. It returns nil if the fault is being healed.
func (f *random) add(m interceptor.Message) (*message, *queue) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return nil, nil
	}
	q := f.queue(queueKey{m.Request.Subject, m.Request.Verb, m.Request.Resource, m.Request.Subresource, m.Part})
	f.messages++
	waiting := &message{
		number: f.messages, arrived: f.env.Clock.Now(), turn: make(chan struct{}), id: m.Request.ID,
		object: history.Ref{Resource: m.Request.Resource, Namespace: m.Request.Namespace, Name: m.Request.ObjectName()},
	}
	if m.Event != nil {
		waiting.object = m.Event.Object.Ref
	}
	q.waiting = append(q.waiting, waiting)
	select {
	case f.arrived <- struct{}{}:
	default:
	}
	return waiting, q
}

// queue returns the queue with a key. At the first call for a key, it draws the queue's priority.
func (f *random) queue(key queueKey) *queue {
	for _, q := range f.queues {
		if q.key == key {
			return q
		}
	}
	q := &queue{key: key, priority: f.env.Rand.Float64()}
	f.queues = append(f.queues, q)
	return q
}

// run lets one message pass after each interval, until the fault is healed. Without messages, it
// waits for the next one.
func (f *random) run() {
	for {
		select {
		case <-f.arrived:
		case <-f.Stopping():
			return
		}
		for waiting := true; waiting; waiting = f.passNext() {
			timer := f.env.Clock.NewTimer(f.params.Interval)
			select {
			case <-timer.C():
			case <-f.Stopping():
				timer.Stop()
				return
			}
		}
	}
}

// passNext lets the next message pass. It returns false if no message waits.
func (f *random) passNext() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.first()
	if q == nil {
		return false
	}
	f.passed++
	if f.changeAt[f.passed] {
		f.lowest--
		q.priority = f.lowest
		q = f.first()
	}
	next := q.waiting[0]
	q.waiting = q.waiting[1:]
	f.reportOvertaken(next.number)
	close(next.turn)
	return true
}

// first returns the queue of the next message, or nil if no message waits.
func (f *random) first() *queue {
	var first, oldest *queue
	for _, q := range f.queues {
		if len(q.waiting) == 0 {
			continue
		}
		if first == nil || q.priority > first.priority {
			first = q
		}
		if oldest == nil || q.waiting[0].number < oldest.waiting[0].number {
			oldest = q
		}
	}
	if oldest != nil && f.env.Clock.Since(oldest.waiting[0].arrived) >= f.params.Patience {
		return oldest
	}
	return first
}

// reportOvertaken counts a message that passes before an older one. At the first time for the queue
// of the older one, it writes a "fired" record to the history.
func (f *random) reportOvertaken(number int) {
	overtakes := false
	for _, q := range f.queues {
		if len(q.waiting) == 0 || q.waiting[0].number > number {
			continue
		}
		overtakes = true
		if !q.late {
			q.late = true
			f.env.Report.Fired(q.waiting[0].id, &q.waiting[0].object, fmt.Sprintf("delays messages of this queue (%s): newer messages pass before them", q.key))
		}
	}
	if overtakes {
		f.overtook++
	}
}

// String returns a text such as "responses to create pods".
func (k queueKey) String() string {
	resource := k.resource
	if k.subresource != "" {
		resource += "/" + k.subresource
	}
	switch k.part {
	case interceptor.RequestMessage:
		return fmt.Sprintf("requests %s %s", k.verb, resource)
	case interceptor.ResponseMessage:
		return fmt.Sprintf("responses to %s %s", k.verb, resource)
	}
	return "watch events of " + resource
}
