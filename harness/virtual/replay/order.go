package replay

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"time"
)

// position says when the replay sends a request, in the order of etcd's revisions.
type position struct {
	// revision is etcd's revision. If commits is true, the request commits this revision. Otherwise, the
	// request reads the state at this revision.
	revision int64
	commits  bool
}

// order sorts the requests into the order in which etcd executed them, and sets their positions.
//
// Audit logs do not order concurrent requests. However, each commit has an etcd revision, which
// most answers contain. For any other request, order chooses a revision that was current while
// kube-apiserver worked on the request.
func order(requests []*Request) {
	slices.SortStableFunc(requests, func(a, b *Request) int { return a.completed().Compare(b.completed()) })
	c := newCommits(requests)
	for _, r := range requests {
		if r.position.revision == 0 {
			r.position = c.place(r)
		}
	}
	slices.SortStableFunc(requests, func(a, b *Request) int {
		return cmp.Or(cmp.Compare(a.position.revision, b.position.revision), boolOrder(a.position.commits, b.position.commits), a.completed().Compare(b.completed()))
	})
}

// boolOrder compares two values so that true comes before false.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// commits says which recorded request committed each etcd revision, and which revisions were
// current during a request.
type commits struct {
	by       map[int64]*Request // the request that committed the revision
	versions map[object][]int64 // the revisions of each object's commits, ascending
	// mentioned has, for each object, the resourceVersions in the recorded requests and answers.
	mentioned map[object]map[int64]bool
	// anyMentioned has the resourceVersions of all objects in the field mentioned.
	anyMentioned map[int64]bool
	// answered says for a time which revision is the highest that requests answered by then have
	// committed. begun says for a time which revision is the lowest that requests received then or
	// later commit. The revisions between the two may be current at that time.
	answered, begun timeline
}

// timeline is a list of times in ascending order, with one revision for each time.
type timeline struct {
	times     []time.Time
	revisions []int64
}

// newCommits finds out which request committed each revision, and sets the positions of these
// requests. The requests must be sorted by the time of their answers.
func newCommits(requests []*Request) *commits {
	c := &commits{by: map[int64]*Request{}, versions: map[object][]int64{}, mentioned: map[object]map[int64]bool{}, anyMentioned: map[int64]bool{}}
	for _, r := range requests {
		c.mention(r)
		if version := r.commitVersion(); version > c.answered.before(r.received()) && c.by[version] == nil {
			c.add(r, version)
			c.answered.append(r.completed(), max(version, c.answered.last()))
		}
	}
	c.setBegun(requests)
	for _, choose := range []func(*Request) int64{c.chooseMentioned, c.chooseFree} {
		for _, r := range requests {
			if r.canCommit() && !r.position.commits && (r.version() == 0 || r.removesFinalizer()) {
				if revision := choose(r); revision != 0 {
					c.add(r, revision)
				}
			}
		}
	}
	for _, versions := range c.versions {
		slices.Sort(versions)
	}
	c.setBegun(requests) // now with the commits whose revisions were chosen
	return c
}

// add stores that the request committed the revision, and sets the position of the request.
func (c *commits) add(r *Request, revision int64) {
	c.by[revision] = r
	c.versions[r.object()] = append(c.versions[r.object()], revision)
	r.position = position{revision, true}
}

// mention adds the resourceVersions of objects in a request and its answer to c.mentioned and
// c.anyMentioned.
func (c *commits) mention(r *Request) {
	add := func(o object, version string) {
		if revision, err := strconv.ParseInt(version, 10, 64); err == nil && revision != 0 {
			if c.mentioned[o] == nil {
				c.mentioned[o] = map[int64]bool{}
			}
			c.mentioned[o][revision], c.anyMentioned[revision] = true, true
		}
	}
	add(r.object(), r.ObjectRef.ResourceVersion)
	if r.Verb != "list" || r.ResponseObject == nil {
		add(r.object(), r.answer.Metadata.ResourceVersion)
		return
	}
	for _, item := range items(r.ResponseObject.Raw) {
		add(object{r.ObjectRef.APIGroup, r.ObjectRef.Resource, item.Metadata.Namespace, item.Metadata.Name}, item.Metadata.ResourceVersion)
	}
}

// item is an object in a list.
type item struct {
	Metadata struct{ Namespace, Name, ResourceVersion string }
}

// items returns the objects of a list.
func items(raw []byte) []item {
	var list struct{ Items []item }
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil
	}
	return list.Items
}

// chooseMentioned returns the revision that a request probably committed. The answer does not contain
// this revision, as for a binding. The result is the first resourceVersion of the object that
// other requests or answers contain, that was current during the request, and that no known request
// committed. chooseMentioned returns 0 if there is none.
func (c *commits) chooseMentioned(r *Request) int64 {
	first, last := c.window(r)
	for _, revision := range slices.Sorted(maps.Keys(c.mentioned[r.object()])) {
		if revision > first && revision <= last && c.by[revision] == nil {
			return revision
		}
	}
	return 0
}

// chooseFree returns a revision that the request may have committed, and that no request or answer
// contains. For a delete, it returns the last such revision during the request, and otherwise the
// first. It returns 0 if there is none.
func (c *commits) chooseFree(r *Request) int64 {
	first, last := c.window(r)
	var chosen int64
	for revision := first + 1; revision <= min(last, first+maxConcurrent); revision++ {
		if c.by[revision] == nil && !c.anyMentioned[revision] && (chosen == 0 || r.Verb == "delete") {
			chosen = revision
		}
	}
	return chosen
}

// maxConcurrent is the maximum number of revisions that chooseFree tries for one request. Other
// requests normally commit fewer revisions during a request.
const maxConcurrent = 1000

// window returns the first and the last revision that were current while kube-apiserver worked on
// the request.
func (c *commits) window(r *Request) (first, last int64) {
	first = c.answered.before(r.received())
	return first, max(first, c.begun.after(r.completed())-1)
}

// place returns the position of a request that committed nothing, or whose revision is unknown.
func (c *commits) place(r *Request) position {
	first, last := c.window(r)
	versions := c.versions[r.object()]
	switch version := r.version(); {
	case !r.isWrite() && version != 0:
		return position{revision: version}
	case r.lostRace() && len(versions) > 0:
		return position{revision: max(last, versions[len(versions)-1])}
	case version != 0: // a write that changed nothing
		next := next(versions, version)
		return position{revision: max(version, min(last, next-1))}
	case r.Code() == 409 && r.ObjectRef.ResourceVersion != "":
		expected, _ := strconv.ParseInt(r.ObjectRef.ResourceVersion, 10, 64)
		if changed := next(versions, expected); changed != math.MaxInt64 {
			return position{revision: max(last, changed)}
		}
	case r.Code() == 404:
		if r.Verb == "create" { // the namespace was not found
			versions = c.versions[object{resource: "namespaces", name: r.ObjectRef.Namespace}]
		}
		created := next(versions, first)
		if created <= last && c.by[created].Verb == "create" {
			return position{revision: created - 1}
		}
	}
	return position{revision: last}
}

// next returns the first of the sorted revisions that is higher than the given one, or
// math.MaxInt64.
func next(revisions []int64, revision int64) int64 {
	i := sort.Search(len(revisions), func(i int) bool { return revisions[i] > revision })
	if i == len(revisions) {
		return math.MaxInt64
	}
	return revisions[i]
}

// setBegun sets the field begun from the commits that are known so far. Call it again when more
// commits are known.
func (c *commits) setBegun(requests []*Request) {
	c.begun = timeline{}
	var committing []*Request
	for _, r := range requests {
		if r.position.commits {
			committing = append(committing, r)
		}
	}
	slices.SortFunc(committing, func(a, b *Request) int { return a.received().Compare(b.received()) })
	for _, r := range committing {
		c.begun.append(r.received(), r.position.revision)
	}
	for i := len(committing) - 2; i >= 0; i-- {
		c.begun.revisions[i] = min(c.begun.revisions[i], c.begun.revisions[i+1])
	}
}

func (t *timeline) append(at time.Time, revision int64) {
	t.times, t.revisions = append(t.times, at), append(t.revisions, revision)
}

// last returns the revision of the latest time. It returns 1, etcd's first revision, if the
// timeline is empty.
func (t *timeline) last() int64 {
	if len(t.revisions) == 0 {
		return 1
	}
	return t.revisions[len(t.revisions)-1]
}

// before returns the revision of the given time or, if the timeline lacks it, of the last time
// before. It returns 1, etcd's first revision, if there is no such time.
func (t *timeline) before(at time.Time) int64 {
	i := sort.Search(len(t.times), func(i int) bool { return t.times[i].After(at) })
	if i == 0 {
		return 1
	}
	return t.revisions[i-1]
}

// after returns the revision of the given time or, if the timeline lacks it, of the first time
// after. If there is no such time, it returns a revision that is higher than all others.
func (t *timeline) after(at time.Time) int64 {
	i := sort.Search(len(t.times), func(i int) bool { return !t.times[i].Before(at) })
	if i == len(t.times) {
		return maxConcurrent + slices.Max(append([]int64{1}, t.revisions...))
	}
	return t.revisions[i]
}
