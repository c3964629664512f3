package scenario

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
	kubejson "sigs.k8s.io/json"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// Fields are the fields of an API object or of a merge patch. They have the Go types of
// unstructured objects: numbers are int64 or float64, lists are []any, and nested objects are
// map[string]any.
type Fields map[string]any

// Copy returns a deep copy in which every number is an int64 or a float64, as in
// unstructured.Unstructured of apimachinery.
func (f Fields) Copy() map[string]any {
	fields := make(map[string]any, len(f))
	for name, value := range f {
		fields[name] = copyValue(value)
	}
	return fields
}

func copyValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return Fields(v).Copy()
	case Fields:
		return v.Copy()
	case []any:
		items := make([]any, 0, len(v))
		for _, item := range v {
			items = append(items, copyValue(item))
		}
		return items
	case nil, string, bool, int64, float64:
		return v
	}
	var plain any // a scenario that Go code built may have another type here, such as int or a struct
	if data, err := json.Marshal(value); err != nil || utiljson.Unmarshal(data, &plain) != nil {
		return nil // [validator.fieldsOf] rejects such a value
	}
	return plain
}

func (f *Fields) decodeNode(d decoder, from *node, path string) error {
	if _, ok := from.value.(mapping); !ok {
		return d.mismatch(from, path, "a mapping")
	}
	value, err := d.decodeJSON(from, path)
	if err == nil {
		*f = value.(map[string]any)
	}
	return err
}

// decodeJSON converts a YAML node to a JSON value. The value has the Go types that [Fields]
// describes.
func (d decoder) decodeJSON(from *node, path string) (any, error) {
	switch v := from.value.(type) {
	case mapping:
		fields := make(map[string]any, len(v))
		for _, field := range v {
			value, err := d.decodeJSON(field.value, join(path, field.name))
			if err != nil {
				return nil, err
			}
			fields[field.name] = value
		}
		return fields, nil
	case sequence:
		items := make([]any, 0, len(v))
		for i, item := range v {
			value, err := d.decodeJSON(item, fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return nil, err
			}
			items = append(items, value)
		}
		return items, nil
	case uint64:
		if v > math.MaxInt64 {
			return nil, d.mismatch(from, path, fmt.Sprintf("at most %d", math.MaxInt64))
		}
		return int64(v), nil
	case notFinite:
		return nil, d.mismatch(from, path, "a JSON value")
	}
	return from.value, nil
}

func (f Fields) encodeNode() *node { return encodeJSON(f.Copy()) }

func encodeJSON(value any) *node {
	switch v := value.(type) {
	case map[string]any:
		fields := mapping{}
		for _, name := range sortedKeys(v) {
			fields = append(fields, entry{name: name, value: encodeJSON(v[name])})
		}
		return &node{value: fields}
	case []any:
		items := sequence{}
		for _, item := range v {
			items = append(items, encodeJSON(item))
		}
		return &node{value: items}
	}
	return &node{value: value}
}

// replicas returns the value of spec.replicas. It returns false if the field is missing or is
// not a whole number.
func (f Fields) replicas() (int, bool) {
	spec, _ := f.Copy()["spec"].(map[string]any)
	replicas, ok := spec["replicas"].(int64)
	return int(replicas), ok
}

// fieldsOf records an error for each field that a manifest or a merge patch must not contain.
//
// These fields are apiVersion, kind, name and namespace, because gauntlet takes them from the
// step and the run. The status is not allowed either. spec.replicas must be within its bounds.
func (v *validator) fieldsOf(path string, kind Kind, found Fields) {
	_, err := json.Marshal(found)
	v.check(err == nil, path, "%v; expected fields that JSON can represent", err)
	found = found.Copy()
	v.fieldsOfStep(path, found)
	v.specReplicas(path+".spec.replicas", kind, found)
	v.fieldTypes(path, kind, found)
	v.schemaFields(path, kind, found)
}

// fieldsOfStep records an error if a manifest or a patch has fields that gauntlet itself sets. A
// complete manifest has several of them, but gets one error.
func (v *validator) fieldsOfStep(path string, found map[string]any) {
	var names []string
	for _, name := range []string{"apiVersion", "kind", "status"} {
		if _, has := found[name]; has {
			names = append(names, name)
		}
	}
	metadata, isMapping := found["metadata"].(map[string]any)
	_, has := found["metadata"]
	v.check(isMapping || !has, path+".metadata", "found no mapping; expected fields such as labels and annotations")
	for _, name := range []string{"name", "namespace"} {
		if _, has := metadata[name]; has {
			names = append(names, "metadata."+name)
		}
	}
	switch {
	case len(names) == 1 && strings.HasPrefix(names[0], "metadata."):
		v.check(false, join(path, names[0]), "found the field %s; remove the fields metadata.name and metadata.namespace", names[0])
	case len(names) == 1:
		v.check(false, join(path, names[0]), "found the field %s; remove the fields apiVersion, kind and status", names[0])
	case len(names) > 1:
		v.check(false, join(path, names[0]), "found the fields %s; remove them, because gauntlet sets them", nearest.List(names, "and"))
	}
}

// status records an error for a merge patch of a status that no object of the kind can have. The argument
// path is the place of the mapping with the field status.
func (v *validator) status(path string, name Kind, found Fields) {
	_, err := json.Marshal(found)
	v.check(err == nil, path+".status", "%v; expected fields that JSON can represent", err)
	if object := v.newObject(name); object != nil {
		_, has := reflect.TypeOf(object).Elem().FieldByName("Status")
		v.check(has, path+".status", "found %s, which has no status; expected a kind with a status", nearest.WithArticle(name))
	}
	v.fieldTypes(path, name, Fields{"status": map[string]any(found)})
	patch := Fields{"status": map[string]any(found)}
	v.schemaFields(path, name, patch)
	v.refusedFields(path, name, patch.Copy(), true)
}

// newObject returns an empty object of a kind of Kubernetes. It returns nil for other kinds.
func (v *validator) newObject(name Kind) runtime.Object {
	kind, _ := kube.Named(string(name))
	for _, created := range v.kinds {
		if created.Name == string(name) {
			kind = created
		}
	}
	object, err := scheme.Scheme.New(kind.GVK())
	if err != nil {
		return nil
	}
	return object
}

// fieldTypes records an error for each unknown field of an object, and for each value of another type. It
// knows the kinds of Kubernetes. The API server validates the fields of other kinds.
func (v *validator) fieldTypes(path string, name Kind, found Fields) {
	object := v.newObject(name)
	if object == nil || v.invalid(path) {
		return
	}
	text, err := json.Marshal(found)
	if err != nil {
		return // fieldsOf has reported it
	}
	unknown, err := kubejson.UnmarshalStrict(text, object)
	if err != nil {
		at, reason := inputfile.WrongValue(text, object)
		if at != "" {
			path = join(path, at)
		}
		v.check(false, path, "%s", cmp.Or(reason, inputfile.JSONReason(err)))
		return
	}
	for _, field := range unknown {
		at, ok := errors.AsType[kubejson.FieldError](field)
		if !ok || v.invalid(join(path, at.FieldPath())) {
			continue
		}
		v.check(false, join(path, at.FieldPath()), "found the field %.60s, which %s does not have%s", lastField(at.FieldPath()), nearest.WithArticle(name), inputfile.SimilarField(object, at.FieldPath()))
	}
}

// lastField returns the end of a path that is too long for an error, such as serviceName. It returns a short path unchanged.
func lastField(path string) string {
	if i := strings.LastIndexByte(path, '.'); i >= 0 && len(path) > 30 {
		return path[i+1:]
	}
	return path
}

// specReplicas records an error if spec.replicas is out of bounds. For a kind of Kubernetes, it also
// records an error if the value is no whole number. A merge patch may remove the field with null.
func (v *validator) specReplicas(path string, kind Kind, found Fields) {
	if replicas, ok := found.replicas(); ok {
		v.number(path, replicas, 0, replicasMax)
		return
	}
	spec, _ := found["spec"].(map[string]any)
	value := spec["replicas"]
	known, ok := kube.Named(string(kind))
	text, _ := value.(string)
	if !longNumber.MatchString(text) {
		text = encodeJSON(value).describe()
	}
	v.check(value == nil || !ok || !isKubernetesVersion(known), path, "found %s; expected a number from 0 to %d", text, replicasMax)
}

// Object returns the object that a create operation with a manifest creates, without its namespace.
func (c *Create) Object() map[string]any {
	object := c.Manifest.Copy()
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
	}
	metadata["name"] = c.Name
	object["apiVersion"], object["kind"], object["metadata"] = c.kubeKind().APIVersion(), string(c.Kind), metadata
	return object
}

// genericCreate records errors about the fields that only a create operation with a manifest has.
// These are apiVersion, kind and manifest.
func (v *validator) genericCreate(path string, c *Create) {
	kind := c.kubeKind()
	v.builtin(path, kind)
	from := "as in an earlier create"
	if o := v.scenario.Operator; o != nil && slices.ContainsFunc(o.Kinds, func(k ExternalKind) bool { return k.Kind == string(c.Kind) }) {
		from = "as in operator.kinds, or in a CustomResourceDefinition of subject.manifests"
	}
	for _, known := range v.kinds {
		if known.Name == string(c.Kind) && !v.invalid("operator.kinds") {
			v.check(known.APIVersion() == kind.APIVersion(), path+".apiVersion",
				"found %s for kind %s; expected %s, %s", kind.APIVersion(), c.Kind, known.APIVersion(), from)
		}
	}
	v.check(c.Manifest != nil || v.invalid(path), path+".manifest", "found nothing; expected the fields of the %s, such as spec", c.Kind)
	v.fieldsOf(path+".manifest", c.Kind, c.Manifest)
	v.refusedFields(path+".manifest", c.Kind, c.Object(), false)
}

// apiVersion records an error if a create operation with a manifest has no valid apiVersion. The
// apiVersion may be missing if [kube.Kinds] has the kind.
func (v *validator) apiVersion(path string, c *Create) {
	if _, ok := kube.Named(string(c.Kind)); ok && c.APIVersion == "" {
		return
	}
	if c.APIVersion == "" && v.removedKind(strings.TrimSuffix(path, "apiVersion")+"kind", "", string(c.Kind)) {
		return
	}
	v.check(c.APIVersion != "", path, "found nothing for kind %q; %s", string(c.Kind), v.missingAPIVersion(c.Kind))
	v.groupVersion(path, c.APIVersion)
}

// missingAPIVersion returns what was expected in a create step that has no apiVersion. The kind has no fixed apiVersion: it may be
// misspelled, of an operator, or of Kubernetes but without a row in [kube.Kinds].
func (v *validator) missingAPIVersion(kind Kind) string {
	for _, version := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		if gvk := version.WithKind(string(kind)); scheme.Scheme.Recognizes(gvk) && kube.ServedVersions(gvk) == nil {
			return "expected apiVersion: " + version.String()
		}
	}
	known := v.expectedKinds(operation{kinds: allKinds})
	for _, row := range kube.Kinds {
		known = append(known, Kind(row.Name))
	}
	var further []Kind // kinds that few scenarios use
	for known := range scheme.Scheme.AllKnownTypes() {
		if scheme.Scheme.Recognizes(known.GroupVersion().WithKind(known.Kind + "List")) {
			further = append(further, Kind(known.Kind))
		}
	}
	slices.Sort(further)
	suggestion := cmp.Or(similarKind(string(kind), known), similarKind(string(kind), further))
	return fmt.Sprintf("expected an apiVersion such as example.com/v1, or one of the kinds %s%s", nearest.List(allKinds, "and"), suggestion)
}

// groupVersion reports an error if the value of the field at path is not a valid apiVersion. The
// argument found is this value. Valid values are, for example, apps/v1 and v1.
func (v *validator) groupVersion(path, found string) {
	group, version, grouped := strings.Cut(found, "/")
	if !grouped {
		group, version = "", found
	}
	v.check(group != "core", path, "found %.80q; expected %s, because the group of core kinds has no name", found, version)
	ok := len(validation.IsDNS1035Label(version)) == 0 && (!grouped || len(validation.IsDNS1123Subdomain(group)) == 0)
	v.check(ok, path, "found %.80q; expected a group and a version such as apps/v1, or v1", found)
}

// builtin records an error about a kind that Kubernetes does not have, although it has the API group.
// The mapping at path has the fields apiVersion and kind.
func (v *validator) builtin(path string, kind kube.Kind) {
	if v.removedKind(path+".kind", kind.APIVersion(), kind.Name) {
		return
	}
	version := kind.GVR.GroupVersion()
	var versions []string
	for _, known := range scheme.Scheme.PrioritizedVersionsForGroup(version.Group) {
		versions = append(versions, known.String())
	}
	if len(versions) == 0 || v.invalid(path+".apiVersion") {
		return
	}
	removed := ""
	if kube.RemovedVersion(kind.GVK()) != "" {
		removed = ", " + kube.NotServed(kind.GVK())
	}
	v.check(isKubernetesVersion(kind), path+".apiVersion", "found %s; expected %s%s", version, nearest.List(versions, "or"), removed)
	noResource := slices.Contains([]string{"Eviction", "Scale", "List"}, kind.Name) || strings.HasSuffix(kind.Name, "Options") ||
		strings.HasSuffix(kind.Name, "List") && scheme.Scheme.Recognizes(version.WithKind(strings.TrimSuffix(kind.Name, "List")))
	v.check(!noResource || !isKubernetesVersion(kind), path+".kind", "found %s, which is no resource of the API; expected a kind whose objects the API server stores, such as ConfigMap", kind.Name)
	served := kube.ServedVersions(kind.GVK())
	v.check(served == nil, path+".apiVersion", "found %s for kind %s; expected %s, %s", version, kind.Name, nearest.List(served, "or"), kube.NotServed(kind.GVK()))
	v.check(!isKubernetesVersion(kind) || kind.Builtin() || served != nil, path+".kind", "found %.60q; expected a kind that %s has%s",
		kind.Name, version, similar(kind.Name, sortedKeys(scheme.Scheme.KnownTypes(version))))
}

// removedKind reports an error about a kind that Kubernetes no longer has. It returns true for such a kind.
func (v *validator) removedKind(path, apiVersion, kind string) bool {
	version, instead := kube.Removed(apiVersion, kind)
	if version == "" {
		return false
	}
	v.check(false, path, "found %s, which Kubernetes %s removed; expected %s", kind, version, cmp.Or(instead, "another kind"))
	return true
}

// IsKindName reports whether a text is the name of an API kind that scenarios accept, such as StatefulSet.
func IsKindName(text string) bool { return kindPattern.MatchString(text) }

// kindPattern matches valid names of API kinds, such as StatefulSet.
var kindPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// kindName reports an error if the value of the field at path is not a valid kind. The argument
// found is this value. A valid value is, for example, StatefulSet. The error suggests one of the known
// kinds.
func (v *validator) kindName(path, found string, known ...Kind) {
	v.check(IsKindName(found), path, "found %.60q; expected the name of a kind, such as StatefulSet%s", found, similarKind(found, known))
}

// similarKind returns a suggestion for a message about an unknown kind, such as "; did you mean
// ReplicaSet?". It also knows the short names of kubectl, such as rs.
func similarKind(found string, known []Kind) string {
	known = slices.DeleteFunc(slices.Clone(known), func(k Kind) bool { return string(k) == found })
	for _, kind := range kube.Kinds {
		if strings.EqualFold(kind.ShortName, found) && slices.Contains(known, Kind(kind.Name)) {
			return "; did you mean " + kind.Name + "?"
		}
	}
	return similar(found, known)
}

// genericTarget records errors about the kind and the name of an object whose kind needs a
// manifest, such as StatefulSet. A create operation may have any such kind. Any other operation
// needs a kind that the workload creates, or that [operation.kubernetes] allows.
func (v *validator) genericTarget(path string, row operation, target *Target) {
	expected := v.expectedKinds(row)
	likely := expected
	if row.effect == creates && !v.kindsFixed || row.kubernetes {
		for _, kind := range kube.Kinds {
			likely = append(likely, Kind(kind.Name))
		}
	}
	v.kindName(path+".kind", string(target.Kind), likely...)
	if row.effect != creates || v.kindsFixed {
		_, known := kube.Named(string(target.Kind))
		suggestion := similarKind(string(target.Kind), likely)
		if suggestion == "" && row.generic && !v.kindsFixed {
			suggestion = ", or a kind in the field operator.kinds of the scenario"
		}
		v.check(v.anyKind || v.invalid("operator.kinds") || hasKind(v.kinds, target.Kind) || row.kubernetes && known, path+".kind", "found %q; expected %s%s",
			string(target.Kind), nearest.List(expected, "or"), suggestion)
	}
	v.check(target.Name != "", path+".name", "found nothing; expected a name")
	v.check(len(validation.IsDNS1123Subdomain(target.Name)) == 0, path+".name",
		"found %.80q; expected a DNS subdomain: at most 253 of a-z, 0-9, - and ., with a letter or digit at either end of each part", target.Name)
}

// expectedKinds returns the kinds that an operation accepts, for error messages. These are the
// kinds that the table operations lists, and the generic kinds of the scenario.
func (v *validator) expectedKinds(row operation) []Kind {
	expected := append([]Kind{}, row.kinds...)
	for _, kind := range v.kinds {
		expected = append(expected, Kind(kind.Name))
	}
	return expected
}
