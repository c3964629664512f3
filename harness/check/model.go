package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Model is what the records up to some point of a history add up to. It is
// brought up to date once for each record, before the judges see that record.
// It grows with the objects and calls that are alive, not with the history.
type Model struct {
	facts     *decoder
	setting   Settings
	processes map[string]*process // the living, by name
	dead      map[string]bool     // the names of those that ended and have not started again
	calls     map[uint64]*call    // in flight
	streams   map[uint64]*stream  // watches, and lists of which an answer is due

	truth *world
	start history.Start
	phase history.PhaseName

	// lived is how far behind the present each process is that was ever paused.
	lived map[string]*hibernation

	// What the current record means. At is when it happened by the clock of the
	// process that it concerns, which stands still while the process does; now is
	// by everybody else's.
	at, now  time.Duration
	seq      int64
	sent     *call     // a call was sent
	roused   *process  // with that call a process ended an idle spell
	answered *answer   // a call was answered
	touched  []touched // the view of an owner changed
	wakes    []wake    // there was news of something
	died     *process  // a process died
}

// answer is a call with its answer.
type answer struct {
	*call
	response *history.Response
}

// touched is an owner of whom a process was just told something.
type touched struct {
	*ledger
	itself bool // something about the owner itself, not only about pods
}

// wake is news that may have put a key on a work queue.
type wake struct {
	item
	itself bool // news of the object itself
}

func newModel(setting Settings) *Model {
	return &Model{
		facts:     newDecoder(),
		setting:   setting,
		processes: map[string]*process{},
		dead:      map[string]bool{},
		calls:     map[uint64]*call{},
		streams:   map[uint64]*stream{},
		lived:     map[string]*hibernation{},
		truth:     newWorld(),
	}
}

// observe brings the model up to date. An error means that the history holds
// something that no cluster says.
func (m *Model) observe(r *history.Record) error {
	m.now, m.seq = r.At, r.Seq
	m.at = m.now - m.behind(m.concerns(r))
	m.sent, m.roused, m.answered, m.touched, m.died = nil, nil, nil, m.touched[:0], nil
	m.wakes = m.wakes[:0]
	m.truth.settle()
	switch {
	case r.Start != nil:
		m.start = *r.Start
	case r.Phase != nil:
		m.phase = r.Phase.Name
	case r.Commit != nil:
		return m.commit(r.Commit)
	case r.Request != nil:
		m.send(r.Request)
	case r.Response != nil:
		m.answer(r.Response)
	case r.List != nil:
		return m.list(r.List)
	case r.Delivery != nil:
		return m.deliver(r.Delivery)
	case r.WatchClosed != nil:
		delete(m.streams, r.WatchClosed.ID)
	case r.Process != nil:
		m.live(r.Process)
	case r.Stall != nil:
		m.stall(r.Stall.Duration)
	}
	return nil
}

// commit takes in a version that came to be.
func (m *Model) commit(t *history.Commit) error { return setTruth(m.truth, m.facts, t) }

func setTruth(truth *world, facts *decoder, t *history.Commit) error {
	if t.Type == history.Deleted {
		truth.remove(t.Object.Resource, t.Object.UID)
		return nil
	}
	decoded, err := facts.decode(&t.Object)
	if err != nil {
		return err
	}
	truth.enter(decoded)
	if t.Object.Resource == podResource {
		truth.addresses[t.Object.UID] = &address{body: t.Object.Body}
	}
	return nil
}

func (m *Model) process(name string) *process {
	p := m.processes[name]
	if p == nil {
		p = newProcess(name, m.facts, m.setting)
		m.processes[name] = p
	}
	return p
}

// send takes in a request.
func (m *Model) send(r *history.Request) {
	if m.dead[r.Subject] {
		return // it was on its way when the process ended
	}
	p := m.process(r.Subject)
	if r.Verb == "watch" || r.Verb == "list" {
		s := newStream(p, feedOf(r))
		m.streams[r.ID] = s
		p.view.asked[r.Resource] = p.view.asked[r.Resource] || !s.feed.selective
	}
	if r.Verb == "watch" {
		return
	}
	spells := p.spells
	c := p.send(r, m.seq, m.at)
	if p.spells > spells {
		m.roused = p
	}
	if c.update != nil {
		c.update.there = m.truth.versionOf(nameOf(c.update.Ref))
	}
	m.calls[r.ID], m.sent = c, c
}

// answer takes in a response. Answers to the dead are nobody's.
func (m *Model) answer(r *history.Response) {
	if !r.OK() {
		delete(m.streams, r.ID)
	}
	if c := m.calls[r.ID]; c != nil {
		delete(m.calls, r.ID)
		c.process.settle(c, r, m.at)
		if c.verb == callLease && c.writes {
			c.process.tenure.told(r, m.seq, m.at)
		}
		m.answered = &answer{call: c, response: r}
	}
}

func (m *Model) list(l *history.List) error {
	s := m.streams[l.ID]
	delete(m.streams, l.ID)
	if s == nil {
		return nil
	}
	complete, err := s.process.view.list(s.feed, l, m.seq, m.at)
	m.look(s.process, complete)
	return err
}

func (m *Model) deliver(d *history.Delivery) error {
	s := m.streams[d.ID]
	if s == nil {
		return nil
	}
	complete, err := s.process.view.deliver(s, d, m.seq, m.at)
	m.look(s.process, complete)
	return err
}

// look enters what has changed in a process' view. When the view has become
// complete up to some version, every account is gone through.
func (m *Model) look(p *process, complete bool) {
	if complete {
		for _, l := range p.ledgers {
			if l.caughtUp() || !l.ready {
				p.view.touch(l.uid, false)
			}
		}
		for uid := range p.adopted {
			if p.view.pods[uid] == nil || p.view.pods[uid].controller.UID == p.adopted[uid] {
				delete(p.adopted, uid)
			}
		}
	}
	for _, uid := range p.view.departed {
		if l := p.deleting[uid]; l != nil {
			l.departs(uid, m.at)
			p.view.touch(l.uid, false)
		}
	}
	p.scan()
	m.lookAtRollouts(p)
	for uid, t := range p.view.touched {
		if p.view.owners[uid] == nil && p.ledgers[uid] == nil {
			continue // the pods of an owner that is not the subject's
		}
		l := p.ledger(uid)
		l.look(t, m.at)
		m.touched = append(m.touched, touched{ledger: l, itself: t.itself})
		m.wakes = append(m.wakes, wake{item{process: p, uid: uid}, t.itself})
	}
	for name, t := range p.view.published {
		p.publication(name).look(p.view, m.at)
		m.wakes = append(m.wakes, wake{item{process: p, service: name}, t.itself})
	}
	p.view.settle()
	p.view.replaced = false
}

// lookAtRollouts enters what has changed about Deployments. The pods of a
// ReplicaSet may wake the Deployment that has it.
func (m *Model) lookAtRollouts(p *process) {
	for uid, t := range p.view.touched {
		if o := p.view.owners[uid]; o != nil && o.controller.Kind == deploymentKind {
			m.wakes = append(m.wakes, wake{item: item{process: p, uid: o.controller.UID}})
		}
		if p.view.deployments[uid] != nil || p.rollouts[uid] != nil {
			p.rollout(uid).look(m.at)
			m.wakes = append(m.wakes, wake{item{process: p, uid: uid}, t.itself})
		}
	}
}

// live takes in what happened to a process.
func (m *Model) live(r *history.Process) {
	switch r.Event {
	case history.ProcessPaused:
		m.hibernate(r.Name)
	case history.ProcessResumed:
		m.wakeUp(r.Name)
	default:
		m.wakeUp(r.Name)
		m.bury(r)
	}
}

// bury ends the process of that name: what starts, starts anew.
func (m *Model) bury(r *history.Process) {
	m.dead[r.Name] = r.Event != history.ProcessStarted
	p := m.processes[r.Name]
	if p == nil {
		return
	}
	p.ended = true
	delete(m.processes, r.Name)
	for id, c := range m.calls {
		if c.process != p {
			continue
		}
		delete(m.calls, id)
		// It may have ended because this got no answer.
		if c.verb == callLease && m.at-c.at > lag && p.tenure.givesUp(m.at) {
			p.leaseFailed, p.leaseLost = true, m.at
		}
	}
	for id, s := range m.streams {
		if s.process == p {
			delete(m.streams, id)
		}
	}
	if r.Event == history.ProcessDied {
		m.died = p
	}
}

// perLedger is what a judge keeps for each ledger. Closed ledgers are swept out
// when the number has doubled.
type perLedger[T any] struct {
	states  map[*ledger]*T
	sweepAt int
}

// of returns the state kept for a ledger, a zero one at first.
func (p *perLedger[T]) of(l *ledger) *T {
	if s := p.states[l]; s != nil {
		return s
	}
	if p.states == nil {
		p.states = map[*ledger]*T{}
	}
	if len(p.states) >= p.sweepAt {
		for old := range p.states {
			if old.closed || old.process.ended {
				delete(p.states, old)
			}
		}
		p.sweepAt = 2*len(p.states) + 64
	}
	p.states[l] = new(T)
	return p.states[l]
}

// podIn names a pod in evidence.
func podIn(p *pod) *history.Ref {
	if p == nil {
		return nil
	}
	return &p.Ref
}
