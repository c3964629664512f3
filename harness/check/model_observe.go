package check

import (
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// newModel returns a model that has not read any record.
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
		stalls:    stalls{total: map[string]time.Duration{}},
		clocks:    map[string]time.Duration{},
		committed: committed,
		issues:    newIssueTracker(tested),
	}
}

// observe updates the model with the next record of the history. It returns an error if an object
// in the record cannot be decoded. This never happens to an object from an API server.
func (m *Model) observe(r *history.Record) error {
	m.now, m.seq = r.At, r.Seq
	m.processTime = m.clockOf(m.processOf(r))
	m.sent, m.endedIdle, m.answered, m.changedOwners, m.died, m.delivered = nil, nil, nil, m.changedOwners[:0], nil, nil
	m.possiblyLost = nil
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
		if s := m.streams[r.WatchClosed.ID]; s != nil {
			s.process.disconnectedAt = m.clockOf(s.process.name)
			if r.WatchClosed.Broken {
				m.possiblyLost = s.process.connectionBroke(s.process.disconnectedAt)
			}
		}
		delete(m.streams, r.WatchClosed.ID)
	case r.Process != nil:
		m.processEvent(r.Process)
	case r.Stall != nil:
		m.stall(r.Stall)
	}
	return nil
}

// commit updates the model's copy of etcd with one committed version of an object.
func (m *Model) commit(t *history.Commit) error { return applyCommit(m.committed, m.decoder, t) }

// applyCommit updates an object set with one committed version of an object. It adds the version
// to the set, or removes a deleted object. It returns an error if the object cannot be decoded.
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

// process returns the running process with the given name. If there is none, it adds a new
// process with empty caches.
func (m *Model) process(name string) *process {
	p := m.processes[name]
	if p == nil {
		p = newProcess(name, m.decoder, m.tested, m.settings)
		m.processes[name] = p
	}
	return p
}

// request updates the model with a request that a process sent. It ignores a request of a process
// that has ended: the request reached the proxy late.
func (m *Model) request(r *history.Request) {
	if m.ended[r.Subject] {
		return
	}
	p := m.process(r.Subject)
	if r.Verb == "watch" || r.Verb == "list" && !isDirectList(r) {
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
	if c.scaling != nil && c.scaling.creates {
		c.holders = &nameHolders{name: objectName{objects.ReplicaSetResource, r.Namespace, c.scaling.name}}
		c.holders.committed, c.holders.cached[0] = m.holdersOf(c.holders.name, p)
	}
	m.calls[r.ID], m.sent = c, c
}

// response updates the model with the response to a request. It ignores the response if the process
// that sent the request has ended.
func (m *Model) response(r *history.Response) {
	if !r.OK() {
		delete(m.streams, r.ID)
	}
	if c := m.calls[r.ID]; c != nil {
		delete(m.calls, r.ID)
		if c.holders != nil {
			var committed *objects.Owner
			committed, c.holders.cached[1] = m.holdersOf(c.holders.name, c.process)
			if !c.holders.certainly(committed) {
				c.holders.committed = nil
			}
		}
		if r.Code == 0 {
			c.process.disconnectedAt = m.processTime
		}
		c.process.recordAnswer(c, r, m.processTime)
		if c.verb == callLease && c.writesLease {
			c.process.lease.recordAnswer(r, m.seq, m.processTime)
		}
		m.answered = &answeredCall{call: c, response: r}
	}
}

// list applies a list response to the caches of the process that sent the request. It returns an
// error if an object cannot be decoded.
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

// deliver applies a watch event to the caches of the process that received it. It returns an
// error if the object cannot be decoded.
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

// applyViewChanges updates the state of a process after a list or watch event has changed the
// caches of the process. It also sets Model.changedOwners and Model.events.
//
// The argument complete is true after the last page of a list and after a bookmark. The cache then
// contains every object of the resource up to the resourceVersion of the list or bookmark.
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
			continue // the controller of these pods is not a known ReplicaSet or ReplicationController
		}
		state := p.ownerState(uid)
		expired := state.expire(m.processTime)
		state.update(change, m.processTime)
		m.changedOwners = append(m.changedOwners, ownerChange{state, change.objectChanged, expired})
		m.events = append(m.events, enqueueEvent{workQueueKey{process: p, uid: uid}, change.objectChanged})
	}
	for name, change := range p.view.changedServices {
		p.serviceState(name).update(p.view, m.processTime)
		m.events = append(m.events, enqueueEvent{workQueueKey{process: p, service: name}, change.objectChanged})
	}
	p.view.clearChanges()
	p.view.relisted = false
}

// applyDeploymentChanges updates the state of each Deployment that changed in the informer caches
// of p. It also updates the state if a ReplicaSet of the Deployment changed there.
//
// It also adds an enqueueEvent for each Deployment that an event of a ReplicaSet or pod may have
// enqueued.
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

// processEvent updates the model with a process record, which says that a process was paused or
// resumed, started or ended.
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

// endProcess ends the process that the record names, and forgets its requests and watches. It sets
// leaseFailed if the process may have exited because it could not renew its lease.
//
// A record that says that a process started also ends the former process with this name. The new
// process begins with empty caches.
func (m *Model) endProcess(r *history.Process) {
	m.ended[r.Name] = r.Event != history.ProcessStarted
	p := m.processes[r.Name]
	if p == nil {
		return
	}
	p.ended = true
	delete(m.processes, r.Name)
	// A leader may have exited because it got no response to a request to renew its lease, or got it late.
	late := p.lease.awaitsConfirmation(m.processTime)
	for id, c := range m.calls {
		if c.process != p {
			continue
		}
		delete(m.calls, id)
		late = late || c.verb == callLease && m.processTime+p.lease.stalled-c.sentAt > lag
	}
	if late && p.lease.mayGiveUp(m.processTime) {
		p.leaseFailed, p.leaseLost = true, m.processTime
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
