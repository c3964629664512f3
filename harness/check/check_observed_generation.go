package check

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// observedGenerationCheck demands that no observedGeneration is above metadata.generation, and that
// status.observedGeneration does not fall. It examines each successful write of
// status.observedGeneration, or of the observedGeneration of a condition, by a controller under
// test.
//
// At the end of the run, it also examines the status.observedGeneration of each object that a
// generic controller reconciles. A generic controller is one that controllers/CONTRACT.md does not
// describe. The check then ignores conditions, because a controller need not evaluate each
// condition again. For all other kinds, the checks converged and rollout-complete examine the final
// status.
//
// A controller may lower status.observedGeneration in two cases. It received the newer generation
// only a short time before, or its cache went back to an older version.
//
// A written observedGeneration may be too high because it belongs to a deleted object with the same
// name. The violation is then the known upstream issue namesake-status.
var observedGenerationCheck = Check{
	ID:            "observed-generation",
	Guarantee:     "A controller never reports an observedGeneration that is higher than metadata.generation. It does not lower status.observedGeneration while its cache has the newer generation. Within the scenario's bound after the faults are healed, status.observedGeneration equals metadata.generation.",
	Contract:      "Kubernetes API conventions, Typical status properties",
	Property:      Liveness,
	Scope:         general,
	ExercisedWhen: "A successful write of the subject sets status.observedGeneration, or the observedGeneration of a condition. Or an object that a controller without a contract reconciles has status.observedGeneration at the end of the run.",
	Ignores:       "Objects at the end of the run, unless a controller without a contract reconciles their kind. Conditions at the end of the run. Failed writes. A lower value from a process that received the newer generation a short time before, or whose cache went back to an older version.",
	New:           newObservedGenerationChecker,
}

// observedGenerationChecker reports each write of a wrong observedGeneration. It also reports each
// object whose status.observedGeneration is out of date at the end of the run.
type observedGenerationChecker struct {
	findings
	within    time.Duration  // how long after settleAt the final status may take
	batchTime time.Duration  // how long a worker may still act on a former cached version
	writes    inFlightWrites // writes of the subject that have no response yet
	settleAt  time.Duration  // when all faults were healed and the settle phase began; 0 before that time
	// committed contains the objects that a generic controller (one without a contract)
	// reconciles and whose status has an observedGeneration. The key is the UID.
	committed map[types.UID]*generationState
	// former contains, for each name, the highest generation that a deleted object with this name
	// had. A status with this or a lower observedGeneration may have been meant for the deleted
	// object.
	former map[objectName]int64
	// reported contains the fields observedGeneration of each object, by UID. They come from the
	// newest version in a response to a write of the subject.
	reported map[types.UID]reportedGenerations
	// cached contains the generation of each object in the cache of each process, by process
	// name and UID.
	cached map[string]map[types.UID]cachedGeneration
}

// generationState contains the generation of a committed object, and the observedGeneration in its
// status. At the end of the run, the two must be equal.
type generationState struct {
	history.Ref
	generation, observed int64
	since                time.Duration // when the generation was committed
}

// reportedGenerations contains all fields named observedGeneration in one version of an object. The
// checker compares them with those of later versions, to find a lowered value.
type reportedGenerations struct {
	generations
	version history.Version
}

// cachedGeneration is the metadata.generation of an object in the cache of a process. The field
// since is the time when the process received this generation, on the clock of the process.
type cachedGeneration struct {
	generation int64
	since      time.Duration
}

// generations contains the status.observedGeneration of an object, and the observedGeneration of
// each condition.
type generations struct {
	Status struct {
		ObservedGeneration observedGeneration `json:"observedGeneration"`
		Conditions         []struct {
			ObservedGeneration observedGeneration `json:"observedGeneration"`
		} `json:"conditions"`
	} `json:"status"`
}

// observedGeneration is the value of a field observedGeneration. Some kinds, such as Rollout of
// Argo Rollouts, have this number as text, although the API conventions demand a number.
type observedGeneration int64

// UnmarshalJSON accepts a number, and text that contains a number. Other text gives 0, as if the
// field were absent.
func (g *observedGeneration) UnmarshalJSON(value []byte) error {
	if text := strings.TrimPrefix(string(value), `"`); text != string(value) {
		*g = observedGeneration(objects.WholeNumber(strings.TrimSuffix(text, `"`), 0))
		return nil
	}
	var number int64
	err := json.Unmarshal(value, &number)
	*g = observedGeneration(number)
	return err
}

// highest returns the highest observedGeneration of the status and its conditions. No write may set
// any of them above metadata.generation.
func (g generations) highest() int64 {
	highest := g.Status.ObservedGeneration
	for _, c := range g.Status.Conditions {
		highest = max(highest, c.ObservedGeneration)
	}
	return int64(highest)
}

// generationsOf decodes all fields named observedGeneration in the JSON of an object or a patch.
// It returns zero values if the fields are absent or have other types.
func generationsOf(body json.RawMessage) (g generations) {
	if objects.Unmarshal(body, &g) != nil {
		return generations{}
	}
	return g
}

func newObservedGenerationChecker(s Settings) Checker {
	return &observedGenerationChecker{
		findings: findings{upstream: s.Upstream}, former: map[objectName]int64{},
		within: s.Within, batchTime: s.batchTime(), writes: inFlightWrites{},
		committed: map[types.UID]*generationState{}, reported: map[types.UID]reportedGenerations{}, cached: map[string]map[types.UID]cachedGeneration{},
	}
}

func (checker *observedGenerationChecker) Observe(m *Model, r *history.Record) {
	if request := checker.writes.observe(r); request != nil {
		checker.written(m, request, r.Response.Object)
	}
	switch {
	case r.Commit != nil:
		checker.commit(m, r.Commit)
	case processStarts(r):
		delete(checker.cached, r.Process.Name)
	case r.Delivery != nil && r.Delivery.Type.HasObject():
		checker.cache(m, r.Delivery.Subject, &r.Delivery.Object)
	case r.List != nil:
		for i := range r.List.Items {
			checker.cache(m, r.List.Subject, &r.List.Items[i])
		}
	case r.Phase != nil && r.Phase.Name == history.PhaseSettle:
		checker.settleAt = m.now
	case r.Phase != nil && r.Phase.Name == history.PhaseEnd:
		checker.end(m)
	}
}

// cache adds the generation of an object that the given process received to the field cached. After
// that, the process should not write a lower observedGeneration.
func (checker *observedGenerationChecker) cache(m *Model, process string, o *history.Object) {
	if o.Generation == 0 {
		return // objects of this kind have no generation
	}
	if checker.cached[process] == nil {
		checker.cached[process] = map[types.UID]cachedGeneration{}
	}
	if checker.cached[process][o.UID].generation != o.Generation {
		checker.cached[process][o.UID] = cachedGeneration{generation: o.Generation, since: m.processTime}
	}
}

// written examines a successful write that sets an observedGeneration. It reports an
// observedGeneration above metadata.generation. It also reports a status.observedGeneration that is
// lower than before, if the process cannot have acted on an older version of the object. Its cache
// must then have contained the newer generation for longer than batchTime + lag. The parameter o is
// the object in the response.
func (checker *observedGenerationChecker) written(m *Model, request *history.Request, o *history.Object) {
	sent := generationsOf(request.Patch)
	if request.Object != nil {
		sent = generationsOf(request.Object.Body)
	}
	now, before := generationsOf(o.Body), checker.reported[o.UID]
	if sent.highest() == 0 || sent.highest() != now.highest() || o.Generation == 0 {
		return // the write does not set an observedGeneration, or the kind has no generation
	}
	checker.exercised++
	if now.highest() > o.Generation {
		report := checker.addViolation
		if now.highest() <= checker.former[nameOf(o.Ref)] { // the status may be that of the deleted object with the same name
			report = func(evidence func() Evidence) { checker.addKnownViolation(namesakeStatus, evidence) }
		}
		report(func() Evidence {
			return m.evidenceOf(&o.Ref, fmt.Sprintf("%s wrote observedGeneration %d to %s, whose generation is %d", request.Subject, now.highest(), o.Ref, o.Generation),
				fmt.Sprintf("an observedGeneration of at most %d (metadata.generation)", o.Generation))
		})
	}
	if o.Version < before.version {
		return // an earlier response contained a newer version of the object
	}
	checker.reported[o.UID] = reportedGenerations{now, o.Version}
	from, to := before.Status.ObservedGeneration, now.Status.ObservedGeneration
	cached := checker.cached[request.Subject][o.UID]
	if to < from && sent.Status.ObservedGeneration == to && cached.generation >= int64(from) && m.processTime-cached.since > checker.batchTime+lag {
		checker.addViolation(func() Evidence {
			return m.evidenceOf(&o.Ref, fmt.Sprintf("%s lowered status.observedGeneration of %s from %d to %d; its cache has had generation %d for %s", request.Subject, o.Ref, from, to, cached.generation, seconds(m.processTime-cached.since)),
				fmt.Sprintf("status.observedGeneration %d or higher", from))
		})
	}
}

// commit stores the generation and the observedGeneration of a committed version. The method end
// compares these two numbers. commit ignores the version unless a generic controller (one without a
// contract) reconciles the object.
//
// When an object is deleted, commit stores its last generation. A later status may have been meant
// for this object.
func (checker *observedGenerationChecker) commit(m *Model, c *history.Commit) {
	o := &c.Object
	if c.Type == history.Deleted {
		checker.former[nameOf(o.Ref)] = max(checker.former[nameOf(o.Ref)], o.Generation)
		delete(checker.committed, o.UID)
		delete(checker.reported, o.UID)
		for _, cached := range checker.cached {
			delete(cached, o.UID)
		}
		return
	}
	if m.tested.genericKindOf(o.Resource) == "" {
		return
	}
	observed := int64(generationsOf(o.Body).Status.ObservedGeneration)
	if observed == 0 || o.Terminating() {
		delete(checker.committed, o.UID)
		return
	}
	state := &generationState{Ref: o.Ref, generation: o.Generation, observed: observed, since: m.now}
	if old := checker.committed[o.UID]; old != nil && old.generation == o.Generation {
		state.since = old.since
	}
	checker.committed[o.UID] = state
}

// end reports each object whose status.observedGeneration is still below its metadata.generation at
// the end of the run. The controllers have the time Settings.Within to update the status. This time
// begins with the last change of the generation, or when all faults are healed, whichever is later.
func (checker *observedGenerationChecker) end(m *Model) {
	for _, uid := range sortedByName(checker.committed, "") {
		o := checker.committed[uid]
		checker.exercised++
		since := max(o.since, checker.settleAt)
		if o.observed >= o.generation || checker.settleAt == 0 || m.now-since-m.stalls.longest(since) < checker.within-tolerance {
			continue
		}
		checker.addViolation(func() Evidence {
			return m.evidenceOf(&o.Ref, fmt.Sprintf("status.observedGeneration of %s is %d, %s after generation %d was committed", o.Ref, o.observed, seconds(m.now-o.since), o.generation),
				fmt.Sprintf("status.observedGeneration %d", o.generation))
		})
	}
}

// ObjectRef returns the reference to the latest committed version of the object. The function
// sortedByName sorts objects by this reference.
func (o *generationState) ObjectRef() *history.Ref { return &o.Ref }
