package explore

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// knownObjects has the newest version of each object in the history so far. It determines which
// objects refer to each other.
type knownObjects struct {
	byKey map[string]*knownObject
	byUID map[types.UID]string
	seen  map[string]map[string]*history.Object // by object key and replica: the version that the replica received last
}

// knownObject is the newest known version of an object, with the references that its fields
// contain.
type knownObject struct {
	*history.Object
	selector labels.Selector // nil if the object has none
	names    []string        // the values of fields that contain names and, for an object without owners, of labels
}

func newKnownObjects() *knownObjects {
	return &knownObjects{byKey: map[string]*knownObject{}, byUID: map[types.UID]string{}, seen: map[string]map[string]*history.Object{}}
}

// set stores a version of an object, unless a newer version is already stored.
func (k *knownObjects) set(o *history.Object) {
	key := o.Ref.String()
	if old := k.byKey[key]; old != nil && old.Version > o.Version {
		return
	}
	k.byKey[key] = withReferences(o)
	if o.UID != "" {
		k.byUID[o.UID] = key
	}
}

// received records that a replica of the controllers under test has received a version of an
// object.
func (k *knownObjects) received(key, replica string, o *history.Object) {
	if k.seen[key] == nil {
		k.seen[key] = map[string]*history.Object{}
	}
	k.seen[key][replica] = o
}

// content returns the version of an object that a replica received last in a watch event. It
// returns nil if the replica received no such event. The argument key is the object's resource,
// namespace and name, such as "pods gauntlet/web-1".
func (k *knownObjects) content(key, replica string) *history.Object { return k.seen[key][replica] }

// target returns the object that a request writes. If the request contains the whole object, target
// returns the object in the request. Otherwise it returns the newest known version. If no version
// is known, the result has only the resource, namespace and name.
func (k *knownObjects) target(r *history.Request) *history.Object {
	ref := history.Ref{Resource: r.Resource, Namespace: r.Namespace, Name: r.ObjectName()}
	known := k.byKey[ref.String()]
	switch {
	case known != nil && (r.Object == nil || r.Subresource != ""):
		return known.Object
	case r.Object != nil:
		object := *r.Object
		object.Resource, object.Namespace, object.Name = ref.Resource, ref.Namespace, ref.Name
		if known != nil {
			object.UID, object.GenerateName = known.UID, known.GenerateName
		}
		return &object
	}
	return &history.Object{Ref: ref}
}

// roots returns the objects that a controller may be reconciling when it writes the given object.
// These are the object itself, its owners, and the owners of its owners. For an object without
// owners, roots also returns other objects with the same name. For example, Endpoints have the
// name of their Service.
func (k *knownObjects) roots(o *history.Object) []*knownObject {
	roots := []*knownObject{withReferences(o)}
	for i := 0; i < len(roots); i++ {
		for _, owner := range roots[i].Owners {
			above := k.byKey[k.byUID[owner.UID]]
			if above != nil && !slices.ContainsFunc(roots, func(r *knownObject) bool { return r.UID == above.UID }) {
				roots = append(roots, above)
			}
		}
	}
	if len(o.Owners) == 0 {
		for _, other := range k.byKey {
			if other.Namespace == o.Namespace && other.Name == o.Name && other.Resource != o.Resource {
				roots = append(roots, other)
			}
		}
	}
	return roots
}

// refers reports whether the object with the given key belongs to one of the roots, which
// [knownObjects.roots] has returned. The object belongs to a root if it is the root, if it refers
// to the root, or if the root refers to it. An unknown object belongs to no root.
func (k *knownObjects) refers(roots []*knownObject, key string) bool {
	object := k.byKey[key]
	return object != nil && slices.ContainsFunc(roots, func(root *knownObject) bool {
		return root.Ref.String() == key || object.refersTo(root) || root.refersTo(object)
	})
}

// refersTo reports whether an object refers to another object. A reference is an ownerReference,
// or a selector that matches the other object. A field with the other object's name is a reference
// too, and so is a label with this name on an object without owners. Operators mark objects with
// labels that must outlive an owner, such as PersistentVolumeClaims.
func (o *knownObject) refersTo(other *knownObject) bool {
	if slices.ContainsFunc(o.Owners, func(owner history.Owner) bool { return owner.UID == other.UID && owner.UID != "" }) {
		return true
	}
	if o.Namespace != other.Namespace {
		return false
	}
	return o.selector != nil && o.selector.Matches(labels.Set(other.Labels)) || slices.Contains(o.names, other.Name)
}

// withReferences returns the object o together with its label selector and the names in its fields.
// Through the selector and the names, the object may refer to other objects.
func withReferences(o *history.Object) *knownObject {
	known := &knownObject{Object: o}
	if len(o.Owners) == 0 {
		known.names = slices.Collect(maps.Values(o.Labels))
	}
	var body map[string]any
	if json.Unmarshal(o.Body, &body) != nil {
		return known // a Secret has no body in the history
	}
	var spec struct {
		Spec struct {
			Selector json.RawMessage `json:"selector"`
		} `json:"spec"`
	}
	if json.Unmarshal(o.Body, &spec) == nil {
		known.selector = parseSelector(spec.Spec.Selector)
	}
	known.names = namesIn(body, "", known.names)
	return known
}

// parseSelector parses a label selector, or a map of labels such as a Service's selector. It
// returns nil for a selector that is missing, empty or invalid.
func parseSelector(raw json.RawMessage) labels.Selector {
	var set labels.Set
	if json.Unmarshal(raw, &set) == nil {
		if len(set) == 0 {
			return nil
		}
		return set.AsSelectorPreValidated()
	}
	selector, err := objects.ParseLabelSelector(raw)
	if err != nil || selector.Empty() {
		return nil
	}
	return selector
}

// namesIn appends more names to a list: the values of all fields whose name ends with "name".
// Examples are the fields serviceName and claimName. It also appends names of containers, which
// refer to no object. Such a name does no harm: the search only injects faults at more writes.
func namesIn(value any, field string, names []string) []string {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			names = namesIn(inner, name, names)
		}
	case []any:
		for _, inner := range v {
			names = namesIn(inner, field, names)
		}
	case string:
		if strings.HasSuffix(strings.ToLower(field), "name") && v != "" {
			names = append(names, v)
		}
	}
	return names
}
