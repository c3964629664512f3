package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// noLostUpdateCheck demands that a controller undoes no change of another client that the
// controller had not read. It examines patches, and updates without a resourceVersion.
//
// A write without a resourceVersion can lose an update. It then sets a field back to a value that
// the process had read. In the meantime, another client has changed the field. The check compares
// four versions of the object:
//
//   - the version that the process had read
//   - the last version before the write
//   - the first version after the write
//   - the content of the write itself
//
// The check assumes that the process had read the newest version that it had received before the
// write. A list, a watch event or a response may have delivered it. If this version contains the
// change of the other client, the check reports nothing. The process may then have undone the
// change on purpose.
//
// The restored value must also come from another client. A controller may restore a value that the
// controller itself set, because maintaining this value is its task.
var noLostUpdateCheck = Check{
	ID:            "no-lost-update",
	Guarantee:     "A controller does not undo a change of another client that was committed after the version that the controller had read.",
	Contract:      "Kubernetes API conventions, Concurrency control and consistency",
	Property:      Safety,
	Scope:         general,
	ExercisedWhen: "An update or patch of the subject fails with a conflict. Or the API server accepts a write without a precondition, and another client has changed the object since the subject read it.",
	Ignores: "Updates and patches with a resourceVersion, and JSON patches with a test operation, because the API server refuses them after a change. Server-side apply, because the API server resolves conflicts by field manager. " +
		"A change that the process had received before it sent the write. A field whose former value was set by the subject. Fields that the write does not contain, such as those that the API server sets to a default. A patch that removes the field itself. " +
		"Objects that the process never received. The content of Secrets, which histories do not contain. An object after a write of the subject with an unknown outcome. An object of which more than 32 versions were committed since the process read it.",
	New: newNoLostUpdateChecker,
}

// recentVersionsMax is the maximum number of committed versions that the checker stores for one
// object. The checker drops the oldest version first.
const recentVersionsMax = 32

// noLostUpdateChecker reports writes that undo a change of another client. An example is a patch
// that sets a field back to a value that a user has just changed.
type noLostUpdateChecker struct {
	findings
	received receivedVersions               // the newest version of each object that each process has received
	objects  map[objectName]*recentVersions // recent versions of each object that is not deleted
	writes   map[uint64]*unansweredWrite    // writes of the subject without a response, by request ID
	// unknownCreates contains the resource of each create with generateName whose outcome is
	// unknown. The checker then assumes that the subject made every new object of this resource.
	unknownCreates map[string]bool
}

// recentVersions contains the last committed versions of one object, oldest first. The checker
// finds in them who changed a field, and when.
type recentVersions struct {
	versions []committedVersion
	// dropped is true if the checker has dropped older versions of the object. The checker may then
	// not know which version set a field to its value.
	dropped bool
	// ownVersions contains the versions that writes of the subject made, according to the
	// responses, and whose commit records have not arrived yet.
	ownVersions map[history.Version]bool
	unanswered  int // number of the subject's writes without a response
	// unknown is true if the checker does not know whether a write of the subject succeeded, or
	// which version the write made.
	unknown bool
	// unconditional contains the successful writes without a precondition that the checker has
	// not examined yet. A precondition is a resourceVersion in the write.
	unconditional []*unansweredWrite
}

// committedVersion is a committed version of an object, with the sequence number of its commit
// record.
type committedVersion struct {
	*history.Object
	seq int64
	own bool // true if a write of the subject made this version
}

// unansweredWrite is a write of a controller under test, from its request until the checker has
// examined it.
type unansweredWrite struct {
	*history.Request
	name objectName
	seq  int64 // sequence number of the request record
	// read is the newest version of the object that the process had received when it sent the
	// write. The value is 0 if the process had received no version.
	read history.Version
	// before is the version of the object in etcd at the time when the process sent the write.
	before history.Version
	// made is the version of the object that the write made. It is 0 before the response.
	made history.Version
	// object contains the committed versions of the object that this request writes. It is nil if
	// the object did not exist when the process sent the write. Until the response arrives,
	// object.unanswered includes this write.
	object *recentVersions
}

func newNoLostUpdateChecker(Settings) Checker {
	return &noLostUpdateChecker{
		received: receivedVersions{}, objects: map[objectName]*recentVersions{},
		writes: map[uint64]*unansweredWrite{}, unknownCreates: map[string]bool{},
	}
}

func (checker *noLostUpdateChecker) Observe(m *Model, r *history.Record) {
	checker.received.observe(m, r)
	switch {
	case r.Commit != nil && !history.IsBookkeeping(r.Commit.Object.Resource):
		checker.commit(m, r.Commit)
	case r.Request != nil && r.Request.IsWrite():
		checker.sent(m, r.Request)
	case r.Response != nil && checker.writes[r.Response.ID] != nil:
		w := checker.writes[r.Response.ID]
		delete(checker.writes, r.Response.ID)
		checker.answered(m, w, r.Response)
	}
}

// commit adds a committed version to the versions of its object. It forgets the versions of a
// deleted object.
func (checker *noLostUpdateChecker) commit(m *Model, c *history.Commit) {
	name := nameOf(c.Object.Ref)
	if c.Type == history.Deleted {
		delete(checker.objects, name)
		return
	}
	o := checker.object(name)
	own := o.ownVersions[c.Object.Version] || len(o.versions) == 0 && checker.unknownCreates[name.resource]
	delete(o.ownVersions, c.Object.Version)
	o.versions = append(o.versions, committedVersion{&c.Object, m.seq, own})
	if len(o.versions) > recentVersionsMax {
		o.versions, o.dropped = slices.Delete(o.versions, 0, 1), true
	}
	checker.examine(m, o)
}

// object returns the stored versions of an object, so that the caller can add versions and writes.
// If nothing is stored for the object, it stores an empty recentVersions.
func (checker *noLostUpdateChecker) object(name objectName) *recentVersions {
	if checker.objects[name] == nil {
		checker.objects[name] = &recentVersions{}
	}
	return checker.objects[name]
}

// sent stores a write that a process sends. It also stores two versions of the object: the newest
// that the process had received, and the newest in etcd. The method compare later finds changes
// between these two versions.
func (checker *noLostUpdateChecker) sent(m *Model, r *history.Request) {
	w := &unansweredWrite{Request: r, seq: m.seq, name: objectName{r.Resource, r.Namespace, r.Name}}
	if r.Verb == "create" {
		w.name.name = ""
		if r.Object != nil {
			w.name.name = r.Object.Name
		}
	}
	if o := checker.objects[w.name]; o != nil {
		o.unanswered++
		w.object = o
		w.read = checker.received[r.Subject][w.name].Version
		w.before = o.newest()
	}
	checker.writes[r.ID] = w
}

// newest returns the newest stored version of the object, or 0 if there is none.
func (o *recentVersions) newest() history.Version {
	if len(o.versions) == 0 {
		return 0
	}
	return o.versions[len(o.versions)-1].Version
}

// answered processes the response to a write. If the write succeeded, it marks the version that the
// write made as the subject's own (markOwn). It also keeps a write without a precondition in
// recentVersions.unconditional, for the method examine.
//
// In two cases, the checker draws no conclusions from writes to this object. The API server
// received the write, but the response record has no status code of the API server. Or the write
// succeeded, but the response does not contain the version that the write made.
func (checker *noLostUpdateChecker) answered(m *Model, w *unansweredWrite, r *history.Response) {
	if w.object != nil {
		w.object.unanswered--
	}
	if w.name.name == "" && r.Object != nil { // a create with generateName
		w.name.name = r.Object.Name
	}
	made := r.ServerCode >= 200 && r.ServerCode < 300 && w.Verb != "delete" && w.Verb != "deletecollection"
	switch {
	case r.Reached && r.ServerCode == 0 || made && (r.Object == nil || r.Object.Version == 0):
		if w.name.name == "" {
			checker.unknownCreates[w.Resource] = true
		} else {
			checker.object(w.name).unknown = true
		}
	case made && r.Object.Version > w.before: // otherwise the write changed nothing
		w.made = r.Object.Version
		o := checker.object(w.name)
		o.markOwn(w.made)
		if w.unconditional() {
			o.unconditional = append(o.unconditional, w)
		}
	case r.ServerCode == 409 && (w.Verb == "update" || w.Verb == "patch"): // the conflict shows that the write had a precondition
		checker.exercised++
	}
	if o := checker.objects[w.name]; o != nil {
		checker.examine(m, o)
	}
}

// markOwn marks one version of the object as made by a controller under test. Changes in this
// version then do not count as changes of another client. If the commit record of the version has
// not arrived yet, markOwn notes the version in ownVersions, and the method commit marks it.
func (o *recentVersions) markOwn(version history.Version) {
	for i := range o.versions {
		if o.versions[i].Version == version {
			o.versions[i].own = true
			return
		}
	}
	if o.newest() < version {
		if o.ownVersions == nil {
			o.ownVersions = map[history.Version]bool{}
		}
		o.ownVersions[version] = true
	}
}

// unconditional reports whether the write is an update or patch without a resourceVersion as
// precondition. The API server accepts such a write even if another client changed the object after
// the process read it.
//
// For server-side apply it returns false, because the API server resolves conflicts by field
// manager.
func (w *unansweredWrite) unconditional() bool {
	switch {
	case w.Verb == "update":
		return w.Object != nil && w.Object.Version == 0
	case w.Verb == "patch" && !strings.Contains(w.PatchType, "apply-patch"):
		return !patchHasVersion(w.Patch)
	}
	return false
}

// examine looks for lost updates among the successful writes to one object that had no precondition
// (no resourceVersion). It then forgets these writes.
//
// examine first waits until every write of this object by the controllers under test has a
// response. A late response may show that these controllers made a version. examine also waits for
// the commit records of the versions that the writes made.
func (checker *noLostUpdateChecker) examine(m *Model, o *recentVersions) {
	if o.unanswered > 0 || len(o.unconditional) == 0 || o.newest() < o.unconditional[len(o.unconditional)-1].made {
		return
	}
	for _, w := range o.unconditional {
		if !o.unknown {
			checker.compare(m, o, w)
		}
	}
	o.unconditional = nil
}

// compare reports a write (the parameter w) if it undid a change of another client. The change
// was committed after the version that the process had read.
func (checker *noLostUpdateChecker) compare(m *Model, o *recentVersions, w *unansweredWrite) {
	read, made := o.index(w.read), o.index(w.made)
	if read < 0 || made < 0 || !slices.ContainsFunc(o.versions[read+1:max(read+1, made)], func(v committedVersion) bool { return !v.own }) {
		return
	}
	checker.exercised++
	fields := make([]map[string]string, made+1)
	for i := range fields {
		fields[i] = objects.Fields(o.versions[i].Object)
	}
	for _, path := range slices.Sorted(maps.Keys(union(fields[read], fields[made-1]))) {
		former, has := fields[read][path]
		if changed := fields[made-1][path]; changed == former || fields[made][path] != former || !w.contains(path, former, has) {
			continue
		}
		change := o.changes(fields[read:made], read, path)
		if origin := o.origin(fields[:read+1], path); change < 0 || origin == nil || origin.own {
			continue
		}
		checker.addViolation(func() Evidence {
			field, ref := objects.FieldName(path), requestRef(w.Request)
			return Evidence{
				Summary: fmt.Sprintf("%s sent %s %s with %s %s, as in version %d, which the process had read, although another client had changed the value to %s in version %d",
					w.Subject, w.Verb, ref, field, describeValue(former), w.read, describeValue(fields[made-1][path]), o.versions[change].Version),
				Expected: "a resourceVersion in the write, or a write without this field",
				Object:   ref, At: m.now, Records: []int64{o.versions[read].seq, o.versions[change].seq, w.seq, o.versions[made].seq},
			}
		})
		return // report each write once
	}
}

// index returns the position of a version in o.versions. It returns -1 if the checker no longer
// has the version.
func (o *recentVersions) index(version history.Version) int {
	return slices.IndexFunc(o.versions, func(v committedVersion) bool { return v.Version == version })
}

// changes looks for the first version in which another client changed a field. It returns the
// position of this version in o.versions. It returns -1 if nobody changed the field, or if a
// controller under test also changed it.
//
// The argument path names the field. The slice fields has one element for each of several
// consecutive versions: a map from path to value. Its first element belongs to the version
// o.versions[from].
func (o *recentVersions) changes(fields []map[string]string, from int, path string) int {
	first := -1
	for i := 1; i < len(fields); i++ {
		if fields[i][path] == fields[i-1][path] {
			continue
		}
		if o.versions[from+i].own {
			return -1
		}
		if first < 0 {
			first = from + i
		}
	}
	return first
}

// origin returns the version that gave a field the value that the process had read. It returns nil
// if the checker no longer has that version.
//
// The argument path names the field. fields[i] maps each path to its value in o.versions[i]. The
// last element belongs to the version that the process had read.
func (o *recentVersions) origin(fields []map[string]string, path string) *committedVersion {
	for i := len(fields) - 1; i > 0; i-- {
		if fields[i][path] != fields[i-1][path] {
			return &o.versions[i]
		}
	}
	if o.dropped {
		return nil
	}
	return &o.versions[0]
}

// contains reports whether the write sets a field back to the value that the process had read. The
// argument path names the field, and value is this value.
//
// The argument present is false if the field was absent in the version that the process had read.
// An update then restores this state if it omits the field.
func (w *unansweredWrite) contains(path, value string, present bool) bool {
	if w.Verb == "patch" {
		return patchSets(w.Request, path, value)
	}
	sent, ok := objects.Fields(w.Object)[path]
	return ok == present && sent == value
}

// union returns a map with the entries of a and b, such as the fields of two versions. If both maps
// have a key, the result has the value of b.
func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// describeValue formats the value of a field for the evidence of a violation, in quotes. It omits
// everything after the first 60 characters. It returns "absent" for "", because a field without a
// value is not in the object.
func describeValue(value string) string {
	if value == "" {
		return "absent"
	}
	return fmt.Sprintf("%.60q", value)
}
