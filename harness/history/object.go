package history

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Version is a resourceVersion. It is a revision of etcd. Versions of objects of all kinds can
// therefore be compared: the higher one is newer. 0 means that there is no resourceVersion.
type Version uint64

// ParseVersion parses a resourceVersion from the API. An empty string gives 0. Any other text
// that is not a whole number is an error.
func ParseVersion(s string) (Version, error) {
	if s == "" {
		return 0, nil
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q: expected a whole number", s)
	}
	return Version(v), nil
}

// Ref identifies an object. If Version is set, it identifies one version of the object.
type Ref struct {
	// Resource is the resource with its API group, such as "pods" or "replicasets.apps".
	Resource  string    `json:"resource"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	UID       types.UID `json:"uid,omitempty"`
	Version   Version   `json:"version,omitempty"`
}

// String formats the reference as "resource namespace/name", such as "pods default/web-1".
// Reports name objects in this form.
func (r Ref) String() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + r.Name
	}
	return r.Resource + " " + name
}

// Object is one version of an API object. It leaves out fields that no check reads:
// managedFields, most of a pod's spec and parts of a pod's status.
type Object struct {
	Ref
	GenerateName string            `json:"generateName,omitempty"`
	Generation   int64             `json:"generation,omitempty"`
	Created      time.Time         `json:"created,omitzero"`
	Deleting     time.Time         `json:"deleting,omitzero"` // deletionTimestamp; zero if the object has none
	Labels       map[string]string `json:"labels,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	Finalizers   []string          `json:"finalizers,omitempty"`
	Owners       []Owner           `json:"owners,omitempty"`
	// Skewed is true if a clock-skew fault shifted the timestamps in this copy of the object. The
	// controllers under test then received other timestamps than the committed version has.
	Skewed bool `json:"skewed,omitempty"`
	// Body is the object as JSON without kind, apiVersion and metadata. It contains, for example,
	// spec, status, subsets or data.
	Body json.RawMessage `json:"body,omitempty"`
}

// Owner is an ownerReference of an object.
type Owner struct {
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Controller bool      `json:"controller,omitempty"`
	// DoesNotBlock is true if the ownerReference has no blockOwnerDeletion: true. The garbage
	// collector then does not wait for the object when it deletes the owner in the foreground. In
	// old histories, DoesNotBlock is always false.
	DoesNotBlock bool `json:"doesNotBlock,omitempty"`
}

// ControllerRef returns the ownerReference with controller: true, or nil if there is none.
func (o *Object) ControllerRef() *Owner {
	for i := range o.Owners {
		if o.Owners[i].Controller {
			return &o.Owners[i]
		}
	}
	return nil
}

// StableName returns a glob that matches the object's name in every run of the scenario. The glob
// depends on how the name was made:
//
//   - The API server generated it: the glob is generateName and "*", such as "web-*".
//   - A controller appended a random suffix such as -x7k2p to the name of an owner: the glob is the
//     name without random suffixes, and "-*".
//   - In all other cases, the glob is the name itself.
func (o *Object) StableName() string {
	if o.GenerateName != "" {
		return o.GenerateName + "*"
	}
	if common := withoutRandomParts(o.Name); common != o.Name && o.isNamedAfterOwner(common) {
		return common + "-*"
	}
	return o.Name
}

// isNamedAfterOwner reports whether the argument common begins with the name of an owner of the
// object. The argument common is the object's name without random suffixes. The owner's name is
// compared without random suffixes, too.
func (o *Object) isNamedAfterOwner(common string) bool {
	return slices.ContainsFunc(o.Owners, func(owner Owner) bool { return strings.HasPrefix(common, withoutRandomParts(owner.Name)) })
}

// withoutRandomParts removes the random suffixes that a controller may have appended to a name. It
// also removes a suffix that only looks random, such as the end of web-https.
func withoutRandomParts(name string) string { return randomParts.ReplaceAllString(name, "") }

// HasGeneratedName reports whether the object's name differs between runs of the scenario; see
// [Object.StableName].
func (o *Object) HasGeneratedName() bool { return o.StableName() != o.Name }

// randomParts matches one or more random suffixes at the end of a name, such as -x7k2p. Like the
// API server for generateName, controllers append 5 characters of package
// k8s.io/apimachinery/pkg/util/rand. A name can have several suffixes, because the owner's name may
// already end with one.
var randomParts = regexp.MustCompile(`(-[bcdfghjklmnpqrstvwxz2456789]{5})+$`)

// Terminating reports whether the object has a deletionTimestamp.
func (o *Object) Terminating() bool { return !o.Deleting.IsZero() }
