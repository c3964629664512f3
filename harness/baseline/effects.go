package baseline

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// effects counts what happened in one run to all objects with the same name. An object that is
// deleted and created again keeps its name.
type effects struct {
	created int // how often the controllers under test created an object with this name
	deleted int // how often the controllers under test deleted an object with this name
	lost    int // how often an object with this name disappeared although the controllers under test had not deleted it
}

// StaleViewFaults lists the faults that make the caches of a controller older than they can be without
// faults.
var StaleViewFaults = []string{"watch-delay", "watch-stall", "watch-skip", "stale-list"}

// responses has the responses to the creates and deletes of an object, in the order of the history. The
// API server executed these requests.
type responses struct{ creates, deletes []Response }

// Response is the place of a response in the history.
type Response struct {
	Seq int64         // the sequence number of its record
	At  time.Duration // the time since the start of the run
}

// Difference says how a run differs from the baseline.
type Difference struct {
	// Text names the object, and says what was found and expected.
	Text string
	// Responses has the response to the first extra create and that to the first extra delete, in the
	// order of the history. It is empty for a difference at the end of the run.
	Responses []Response
}

// effectsFormat is the format in which a value of [Facts] contains effects, such as "2 created, 1
// deleted, 0 lost".
const effectsFormat = "%d created, %d deleted, %d lost"

func (e effects) String() string {
	return fmt.Sprintf(effectsFormat, e.created, e.deleted, e.lost)
}

// parseEffects parses a value of [Observer.Effects], such as "2 created, 1 deleted, 0 lost". It
// returns nil for the value [Any]. The parameter key names the object in an error.
func parseEffects(key, value string) (*effects, error) {
	if value == Any {
		return nil, nil
	}
	var e effects
	if n, err := fmt.Sscanf(value, effectsFormat, &e.created, &e.deleted, &e.lost); n != 3 || err != nil || e.String() != value || min(e.created, e.deleted, e.lost) < 0 {
		return nil, fmt.Errorf("effects: %s: found %q; expected numbers such as %q, or %q", key, value, effects{created: 1}, Any)
	}
	return &e, nil
}

// effectsOf returns the counts of one object. The parameter key names the object, for example
// "services default/web". If there are no counts yet, effectsOf adds zero counts.
func (o *Observer) effectsOf(key string) *effects {
	if o.counts[key] == nil {
		o.counts[key] = new(effects)
	}
	return o.counts[key]
}

// record adds a response to the responses about an object, if it has changed the counts of the object.
// The parameter before has the counts before the response.
func (o *Observer) record(key string, before effects, r *history.Record) {
	after := o.effectsOn(key)
	if after == before {
		return
	}
	if o.responses[key] == nil {
		o.responses[key] = new(responses)
	}
	to, place := o.responses[key], Response{Seq: r.Seq, At: r.At}
	if after.created > before.created {
		to.creates = append(to.creates, place)
	}
	if after.deleted > before.deleted {
		to.deletes = append(to.deletes, place)
	}
}

// effectsOn returns the counts of one object, as effectsOf does, but adds none.
func (o *Observer) effectsOn(key string) effects {
	if e := o.counts[key]; e != nil {
		return *e
	}
	return effects{}
}

// responsesTo returns the responses to creates and deletes of objects. These are the objects that count
// together under the given key of the baseline.
func (b *Baseline) responsesTo(key string, run *Observer) responses {
	var all responses
	for object, r := range run.responses {
		if b.countsAs(object) == key {
			all.creates = append(all.creates, r.creates...)
			all.deletes = append(all.deletes, r.deletes...)
		}
	}
	bySeq := func(a, b Response) int { return cmp.Compare(a.Seq, b.Seq) }
	slices.SortFunc(all.creates, bySeq)
	slices.SortFunc(all.deletes, bySeq)
	return all
}

// firstExtra returns the first of the last n responses, as a list. The list is empty if n is not positive.
func firstExtra(all []Response, n int) []Response {
	if n <= 0 || n > len(all) {
		return nil
	}
	return all[len(all)-n:][:1]
}

// send adds the resource of a write request to the resources that the controllers under test
// write. If the request creates or deletes an object, send stores the request until the response
// arrives. It also stores updates and patches. It does not store the delete of an ended pod with a generated name. Such a pod counts as
// lost, because the end of the pod, and not the delete, is the reason for a replacement.
func (o *Observer) send(r *history.Request) {
	for _, resource := range []string{r.Resource, r.Resource + statusSuffix} {
		if (resource == r.Resource || r.Subresource == "status") && !slices.Contains(o.written, resource) {
			o.written = append(o.written, resource)
		}
	}
	if r.Subresource != "" || r.ObjectName() == "" || r.Object != nil && r.Object.IsLeaderLock() {
		return
	}
	ref := history.Ref{Resource: r.Resource, Namespace: r.Namespace, Name: r.ObjectName()}
	w := &write{verb: r.Verb, object: ref.String()}
	switch {
	case r.Verb == "create" && r.Object != nil:
		created := *r.Object
		created.Resource, created.Namespace = r.Resource, r.Namespace
		w.key, w.generated = stableKey(&created), created.HasGeneratedName()
	case r.Verb == "delete" && o.unobserved[w.object] != "":
		w.key, w.unobserved = o.unobserved[w.object], true
	case r.Verb == "delete":
		object := o.live[w.object]
		if object == nil || object.Terminating() || object.HasGeneratedName() && ended(object) {
			return
		}
		w.key, w.uid = stableKey(object), object.UID
		w.afterFailedWrite = object.HasGeneratedName() && o.failedWrites[w.object]
	case r.Verb == "update":
	case r.Verb == "patch": // a server-side apply creates the object if it does not exist
		applied := history.Object{Ref: ref}
		if r.Object != nil {
			applied = *r.Object
			applied.Ref = ref
		}
		w.key, w.generated = stableKey(&applied), applied.HasGeneratedName()
	default:
		return
	}
	o.writes[r.ID] = w
}

// answer counts a create or delete that the API server executed. The response counts even if the
// controllers under test did not receive it.
//
// The controllers cannot know the generated name of an object if they did not receive the response
// to its create. They may then create another object, and delete one of the two. The first object
// therefore counts as created and as lost, so that its replacement is not extra. The same holds for an
// object with a generated name that they delete after another write of the object failed, and none
// succeeded since. They may have found that it is not complete.
func (o *Observer) answer(w *write, r *history.Response) {
	creates := w.verb == "create" || w.verb == "patch" && r.ServerCode == http.StatusCreated
	switch {
	case creates, w.verb == "delete":
	case r.OK():
		delete(o.failedWrites, w.object)
	case r.Code == 0 || r.Code >= http.StatusInternalServerError:
		o.failedWrites[w.object] = true
	}
	switch {
	case w.verb == "update":
	case r.ServerCode < 200 || r.ServerCode >= 300:
	case creates:
		o.effectsOf(w.key).created++
		if w.generated && !r.OK() {
			o.effectsOf(w.key).lost++
		}
		if r.Object != nil && o.viewsMayBeOld() {
			o.fromOldView[r.Object.UID] = o.effectsOf(w.key).deleted
		}
		if created := r.Object; created != nil && o.live[created.Ref.String()] == nil && !o.gone[created.UID] {
			o.unobserved[created.Ref.String()] = w.key
		}
	case w.verb == "patch":
	case w.unobserved:
		if o.unobserved[w.object] != "" {
			o.effectsOf(w.key).deleted++
		}
		delete(o.unobserved, w.object)
	case !o.deletes[w.uid]:
		if object := o.live[w.object]; object == nil || object.UID != w.uid { // the object was deleted before this response, and the method commit has counted it as lost
			o.effectsOf(w.key).lost--
		} else {
			o.deletes[w.uid] = true
		}
		o.effectsOf(w.key).deleted++
		if w.afterFailedWrite {
			o.effectsOf(w.key).lost++
		}
		if before, ok := o.fromOldView[w.uid]; ok {
			o.replaced[w.key] = append(o.replaced[w.key], before)
			delete(o.fromOldView, w.uid)
		}
	}
}

// viewsMayBeOld reports whether a fault makes caches old now, or did so until oldViewTime ago.
func (o *Observer) viewsMayBeOld() bool {
	return len(o.staleFaults) > 0 || o.staleViews && o.now-o.staleUntil <= oldViewTime
}

// oldViewTime is how long after the end of a fault the controllers under test may act on an old view.
const oldViewTime = 5 * time.Second

// Effects returns one fact for each object that the controllers under test (the subject) created or
// deleted so far. Objects with generated names count together; their key ends with "*". The value of
// a fact is a text such as "2 created, 1 deleted, 0 lost". It says how often the subject created and
// deleted the object. A lost object disappeared although the subject did not delete it.
func (o *Observer) Effects() Facts {
	facts := Facts{}
	for key, e := range o.counts {
		if e.created > 0 || e.deleted > 0 {
			facts[key] = e.String()
		}
	}
	return facts
}

// ExtraEffects returns the objects that the controllers created or deleted more often than in the
// baseline, sorted by key. The baseline is what runs without faults have in common. The parameter found
// contains the effects of the run to compare; see [Baseline.EffectsOf].
//
// A create is not extra if it replaces an object that disappeared without a delete by the
// controllers under test. For example, a user or a node may have deleted that object. Among objects
// with generated names, a delete is not extra if it removes such a replacement.
//
// If one of the faults in [StaleViewFaults] fired, the controllers under test may have acted on old views.
// A temporary object is then not extra: they could not know that they did not need the object, and
// deleted it later. An object with a fixed name is only temporary in two cases. It does not exist at the
// end, or they created it from an old view after a delete that the baseline has, too, and replaced it.
func (b *Baseline) ExtraEffects(run *Observer, found Facts) []Difference {
	var all []Difference
	for _, key := range slices.Sorted(maps.Keys(found)) {
		got, err := parseEffects(key, found[key])
		if err != nil || got == nil || b.Effects[key] == Any {
			continue
		}
		want := new(effects)
		if text, ok := b.Effects[key]; ok {
			if want, err = parseEffects(key, text); err != nil {
				continue // Read has rejected such a value
			}
		}
		replaced := max(got.lost-want.lost, 0)
		surplus := 0
		if HasGeneratedName(key) {
			surplus = replaced
		}
		extraCreates, extraDeletes := got.created-want.created-replaced, got.deleted-want.deleted-surplus
		temporary := min(extraCreates, extraDeletes)
		if !HasGeneratedName(key) && got.created != got.deleted {
			temporary = min(temporary, b.replacements(key, run, want.deleted))
		}
		if run.staleViews && temporary > 0 {
			extraCreates, extraDeletes = extraCreates-temporary, extraDeletes-temporary
		}
		if extraCreates > 0 || extraDeletes > 0 {
			to := b.responsesTo(key, run)
			extra := slices.Concat(firstExtra(to.creates, extraCreates), firstExtra(to.deletes, extraDeletes))
			slices.SortFunc(extra, func(a, b Response) int { return cmp.Compare(a.Seq, b.Seq) })
			all = append(all, Difference{Text: fmt.Sprintf("%s: found %s; expected %s (%s too often)", key, got, want, acts(extraCreates, extraDeletes)), Responses: extra})
		}
	}
	return all
}

// replacements returns how many objects with a fixed name the controllers created from an old
// view, and deleted later. Only creates after a delete that the baseline has, too, count. After more
// deletes, such a create may have replaced an object that they should not have deleted.
func (b *Baseline) replacements(key string, run *Observer, deleted int) (n int) {
	for object, before := range run.replaced {
		if b.countsAs(object) != key {
			continue
		}
		for _, times := range before {
			if times > 0 && times <= deleted {
				n++
			}
		}
	}
	return n
}

// acts says in words which of the two numbers of extra creates and deletes is positive.
func acts(creates, deletes int) string {
	switch {
	case deletes <= 0:
		return "created"
	case creates <= 0:
		return "deleted"
	}
	return "created and deleted"
}
