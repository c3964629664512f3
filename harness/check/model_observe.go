package check

import (
	"github.com/kube-gauntlet/gauntlet/harness/history"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

func newModel(setting Settings) *Model {
	tested := newTestedControllers(setting.Controllers)
	committed := newObjectSet()
	committed.metadata = newMetadataSet(tested)
	return &Model{
		decoder:   objects.NewDecoder(),
		settings:  setting,
		tested:    tested,
		processes: map[string]*process{},
		ended:     map[string]bool{},
		calls:     map[uint64]*call{},
		streams:   map[uint64]*watchStream{},
		pauses:    map[string]*pausedTime{},
		committed: committed,
	}
}

// observe updates the model with a record. It returns an error if the record contains an
// object that no API server would return.
func (m *Model) observe(r *history.Record) error {
	m.now, m.seq = r.At, r.Seq
	m.processTime = m.now - m.clockOffset(m.processOf(r))
	m.sent, m.endedIdle, m.answered, m.changedOwners, m.died, m.delivered = nil, nil, nil, m.changedOwners[:0], nil, nil
	m.events = m.events[:0]
	m.committed.clearChanges()
	switch {
	case r.Start != nil:
		m.start = *r.Start
	case r.Phase != nil:
		m.phase = r.Phase.Name
	case r.Commit != nil:
		return m.commit(r.Commit)
	case r.Request != nil:
		m.request(r.Request)
	case r.Response != nil:
		m.response(r.Response)
	case r.List != nil:
		return m.list(r.List)
	case r.Delivery != nil:
		return m.deliver(r.Delivery)
	case r.WatchClosed != nil:
		delete(m.streams, r.WatchClosed.ID)
	case r.Process != nil:
		m.processEvent(r.Process)
	case r.Stall != nil:
		m.stall(r.Stall.Duration)
	}
	return nil
}

// commit applies a committed version to the committed state.
func (m *Model) commit(t *history.Commit) error { return applyCommit(m.committed, m.decoder, t) }

func applyCommit(committed *objectSet, d *objects.Decoder, t *history.Commit) error {
	if t.Type == history.Deleted {
		committed.metadata.remove(t.Object.UID)
		committed.remove(t.Object.Resource, t.Object.UID)
		return nil
	}
	committed.metadata.put(&t.Object)
	decoded, err := d.Decode(&t.Object)
	if err != nil {
		return err
	}
	committed.put(decoded)
	if t.Object.Resource == objects.PodResource {
		committed.podAddresses[t.Object.UID] = &objects.PodAddress{Body: t.Object.Body}
	}
	return nil
}

func (m *Model) process(name string) *process {
	p := m.processes[name]
	if p == nil {
		p = newProcess(name, m.decoder, m.tested, m.settings)
		m.processes[name] = p
	}
	return p
}

// request records a request. It ignores a late request of a process that has ended.
func (m *Model) request(r *history.Request) {
	if m.ended[r.Subject] {
		return // the proxy received it after the process had ended
	}
	p := m.process(r.Subject)
	if r.Verb == "watch" || r.Verb == "list" {
		s := newWatchStream(p, watchScopeOf(r))
		m.streams[r.ID] = s
		p.view.requestedAll[r.Resource] = p.view.requestedAll[r.Resource] || !s.scope.selective
	}
	if r.Verb == "watch" {
		return
	}
	idlePeriods := p.idlePeriods
	c := p.recordRequest(r, m.seq, m.processTime)
	if p.idlePeriods > idlePeriods {
		m.endedIdle = p
	}
	if c.update != nil {
		c.update.committedVersion = m.committed.versionOf(nameOf(c.update.Ref))
	}
	m.calls[r.ID], m.sent = c, c
}

// response records a response. It ignores the response if the process has ended.
func (m *Model) response(r *history.Response) {
	if !r.OK() {
		delete(m.streams, r.ID)
	}
	if c := m.calls[r.ID]; c != nil {
		delete(m.calls, r.ID)
		c.process.recordAnswer(c, r, m.processTime)
		if c.verb == callLease && c.writesLease {
			c.process.lease.recordAnswer(r, m.seq, m.processTime)
		}
		m.answered = &answeredCall{call: c, response: r}
	}
}

func (m *Model) list(l *history.List) error {
	s := m.streams[l.ID]
	delete(m.streams, l.ID)
	if s == nil {
		return nil
	}
	m.delivered = s.process
	complete, err := s.process.view.list(s.scope, l, m.seq, m.processTime)
	m.applyViewChanges(s.process, complete)
	return err
}

func (m *Model) deliver(d *history.Delivery) error {
	s := m.streams[d.ID]
	if s == nil {
		return nil
	}
	m.delivered = s.process
	complete, err := s.process.view.deliver(s, d, m.seq, m.processTime)
	m.applyViewChanges(s.process, complete)
	return err
}

// applyViewChanges updates the state of a process after a change of its caches. The
// parameter complete is true if the changed cache now contains all objects up to its
// resourceVersion.
func (m *Model) applyViewChanges(p *process, complete bool) {
	if complete {
		for _, state := range p.ownerStates {
			if state.dropObservedCreates() || !state.synced {
				p.view.markChanged(state.uid, false)
			}
		}
		for uid := range p.adopted {
			if p.view.pods[uid] == nil || p.view.pods[uid].Controller.UID == p.adopted[uid] {
				delete(p.adopted, uid)
			}
		}
	}
	for _, uid := range p.view.noLongerActive {
		if state := p.deleting[uid]; state != nil {
			state.observeDeletion(uid, m.processTime)
			p.view.markChanged(state.uid, false)
		}
	}
	p.recordStartupOrphans()
	m.applyDeploymentChanges(p)
	for uid, change := range p.view.changedObjects {
		if p.view.owners[uid] == nil && p.ownerStates[uid] == nil {
			continue // pods of a controller that is not the subject
		}
		state := p.ownerState(uid)
		state.update(change, m.processTime)
		m.changedOwners = append(m.changedOwners, ownerChange{ownerState: state, objectChanged: change.objectChanged})
		m.events = append(m.events, enqueueEvent{workQueueKey{process: p, uid: uid}, change.objectChanged})
	}
	for name, change := range p.view.changedServices {
		p.serviceState(name).update(p.view, m.processTime)
		m.events = append(m.events, enqueueEvent{workQueueKey{process: p, service: name}, change.objectChanged})
	}
	p.view.clearChanges()
	p.view.relisted = false
}

// applyDeploymentChanges updates the state of Deployments after a change of the caches. A
// change of a ReplicaSet's pods may enqueue the Deployment that controls it.
func (m *Model) applyDeploymentChanges(p *process) {
	for uid, change := range p.view.changedObjects {
		if o := p.view.owners[uid]; o != nil && o.Controller.Kind == objects.DeploymentKind {
			m.events = append(m.events, enqueueEvent{workQueueKey: workQueueKey{process: p, uid: o.Controller.UID}})
		}
		if p.view.deployments[uid] != nil || p.rollouts[uid] != nil {
			p.rollout(uid).update(m.processTime)
			m.events = append(m.events, enqueueEvent{workQueueKey{process: p, uid: uid}, change.objectChanged})
		}
	}
}

// processEvent records that a process was paused, resumed, started or ended.
func (m *Model) processEvent(r *history.Process) {
	switch r.Event {
	case history.ProcessPaused:
		m.pause(r.Name)
	case history.ProcessResumed:
		m.resume(r.Name)
	default:
		m.resume(r.Name)
		m.endProcess(r)
	}
}

// endProcess removes the process that the record names. A process with this name that
// starts later is a new process with empty caches.
func (m *Model) endProcess(r *history.Process) {
	m.ended[r.Name] = r.Event != history.ProcessStarted
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
		// The process may have ended because this request got no response.
		if c.verb == callLease && m.processTime-c.sentAt > lag && p.lease.mayGiveUp(m.processTime) {
			p.leaseFailed, p.leaseLost = true, m.processTime
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
