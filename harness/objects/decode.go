package objects

import (
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Decoder decodes recorded objects and caches the results. The cache is useful because a history
// often contains the same version up to three times within a second. These are its commit, its
// delivery to the controller, and the API server's response.
//
// The fault clock-skew shifts the timestamps in the copies that the controller receives, so the
// copies of one version may differ. The Decoder decodes every such copy. It keeps only the last
// one, apart from the unchanged version. A Decoder is not safe for concurrent use.
type Decoder struct {
	versionCache // caches decoded values of type *Pod, *Owner, *Deployment or *Service
	// generic is the cache of *Generic values, which contain the fields that many kinds have. It is
	// a separate cache, because callers may also decode the same version to the Go type of its
	// kind.
	generic versionCache
	// Templates and selectors have separate caches. The thousands of versions of an owner usually
	// share one template and one selector.
	templates parsedText[*Template]
	selectors map[*OwnerKind]parsedText[labels.Selector]
}

// versionCache contains decoded versions of objects. When it is full, it evicts the version
// that was added first.
type versionCache struct {
	decoded map[VersionKey]any
	oldest  []VersionKey // ring buffer of the keys of the map decoded, in the order of insertion
	next    int          // index in oldest of the next key to evict, once oldest is full
}

func newVersionCache() versionCache { return versionCache{decoded: map[VersionKey]any{}} }

// VersionKey identifies one version of an object in the caches of a Decoder.
type VersionKey struct {
	UID     types.UID
	Version history.Version
	Skewed  bool // a fault skewed the timestamps in this version
}

// decodedMax is the maximum number of versions in one cache. It is more than a run creates in a
// few seconds.
const decodedMax = 1 << 14

// NewDecoder returns a Decoder with an empty cache.
func NewDecoder() *Decoder {
	d := &Decoder{
		versionCache: newVersionCache(),
		generic:      newVersionCache(),
		templates:    parsedText[*Template]{},
		selectors:    map[*OwnerKind]parsedText[labels.Selector]{},
	}
	for i := range OwnerKinds {
		d.selectors[&OwnerKinds[i]] = parsedText[labels.Selector]{}
	}
	return d
}

// parsedText is a cache of decoded parts of objects, such as selectors. The key of the map is the
// JSON text of the part, so each different text is decoded only once. The value is the decoded
// form.
type parsedText[T any] map[string]T

// parsedTextMax is the maximum number of entries in one parsedText, which is a cache of decoded
// JSON texts. When this cache is full, it is emptied, so that it does not grow without limit. A
// run has only a few different texts at a time.
const parsedTextMax = 1 << 10

// read returns the decoded form of a JSON text from the cache. If the cache does not contain the
// text, read decodes the text with the argument decode, and caches the result.
func (t parsedText[T]) read(raw json.RawMessage, decode func(json.RawMessage) (T, error)) (T, error) {
	if value, ok := t[string(raw)]; ok {
		return value, nil
	}
	value, err := decode(raw)
	if err != nil {
		return value, err
	}
	if len(t) >= parsedTextMax {
		clear(t)
	}
	t[string(raw)] = value
	return value, nil
}

// Decode returns an object, decoded to the Go type for its kind, such as *Pod. The field
// [kube.Kind.Decoding] says which type this is.
//
// Decode returns nil for kinds without a row in the table of package kube. It also returns nil for
// kinds whose Decoding is [kube.AsGeneric], which have no Go type of their own. Use
// [Decoder.Generic] for them.
func (d *Decoder) Decode(o *history.Object) (any, error) {
	kind, _ := kube.ByResource(o.Resource)
	switch kind.Decoding {
	case kube.AsReplicaSet, kube.AsReplicationController:
		return d.Owner(OwnerKindByResource(o.Resource), o)
	case kube.AsPod:
		return d.Pod(o)
	case kube.AsDeployment:
		return d.Deployment(o)
	case kube.AsService:
		return d.Service(o)
	case kube.AsEndpoints:
		return NewEndpoints(o), nil // not cached, because Endpoints can be large: they list each pod of the Service
	}
	return nil, nil
}

// Pod returns a recorded pod in decoded form. If the Decoder has decoded this version before, Pod
// returns the cached result.
func (d *Decoder) Pod(o *history.Object) (*Pod, error) {
	return decodeOnce(&d.versionCache, o, decodePod)
}

// Deployment returns a recorded Deployment in decoded form. If the Decoder has decoded this
// version before, the method returns the cached result.
func (d *Decoder) Deployment(o *history.Object) (*Deployment, error) {
	return decodeOnce(&d.versionCache, o, d.DecodeDeployment)
}

// Service returns a recorded Service in decoded form. If the Decoder has decoded this version
// before, the method returns the cached result.
func (d *Decoder) Service(o *history.Object) (*Service, error) {
	return decodeOnce(&d.versionCache, o, decodeService)
}

// Owner returns a recorded ReplicaSet or ReplicationController in decoded form. If the Decoder has
// decoded this version before, Owner returns the cached result. The argument kind points to the
// row of OwnerKinds for the kind of the object.
func (d *Decoder) Owner(kind *OwnerKind, o *history.Object) (*Owner, error) {
	return decodeOnce(&d.versionCache, o, func(o *history.Object) (*Owner, error) { return d.DecodeOwner(kind, o) })
}

// decodeOnce returns the decoded version of an object from the cache. If the cache does not have
// the version, decodeOnce decodes the object with the argument decode, and caches the result.
func decodeOnce[T any](c *versionCache, o *history.Object, decode func(*history.Object) (*T, error)) (*T, error) {
	if o.UID == "" || o.Version == 0 { // for example the object in a create request
		return decodeVersion(o, decode)
	}
	key := VersionKey{UID: o.UID, Version: o.Version, Skewed: o.Skewed}
	cached, again := c.decoded[key]
	// A fault may skew the timestamps differently in each delivery of a version, so a skewed
	// version is decoded again.
	if version, ok := cached.(*T); ok && !o.Skewed {
		return version, nil
	}
	decoded, err := decodeVersion(o, decode)
	if err != nil {
		return nil, err
	}
	if !again {
		c.evict(key)
	}
	c.decoded[key] = decoded
	return decoded, nil
}

// decodeVersion decodes an object with the argument decode, without using the cache. An error
// names the object and its resourceVersion.
func decodeVersion[T any](o *history.Object, decode func(*history.Object) (*T, error)) (*T, error) {
	decoded, err := decode(o)
	if err != nil {
		return nil, fmt.Errorf("decoding the body of %s, version %d: %s", o.Ref, o.Version, inputfile.JSONReason(err))
	}
	return decoded, nil
}

// evict makes room in the cache for the version with the given key, which the caller then adds. If
// the cache is full, evict removes the version that was added first.
func (c *versionCache) evict(key VersionKey) {
	if len(c.oldest) < decodedMax {
		c.oldest = append(c.oldest, key)
		return
	}
	delete(c.decoded, c.oldest[c.next])
	c.oldest[c.next] = key
	c.next = (c.next + 1) % decodedMax
}

// Cached returns the decoded version of an object from the cache. The argument uid is the UID of
// the object, and at is the resourceVersion. Cached returns nil if the Decoder has not decoded the
// version, or no longer has it in its cache. Checks call Cached to get the version on which a
// write is based.
func Cached[T any](d *Decoder, uid types.UID, at history.Version) *T {
	version, ok := d.decoded[VersionKey{UID: uid, Version: at}].(*T)
	if !ok { // the cache may have a copy of this version in which a fault skewed the timestamps
		version, _ = d.decoded[VersionKey{UID: uid, Version: at, Skewed: true}].(*T)
	}
	return version
}

// Unmarshal decodes a JSON text into the variable to which the argument into points. If the text
// is empty, Unmarshal does not change the variable and returns no error.
func Unmarshal(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return history.Unmarshal(raw, into)
}

// WholeNumber parses an integer, such as the value of an annotation. It returns the argument none
// if the text is empty or not an integer.
func WholeNumber(s string, none int64) int64 {
	if s == "" { // the most frequent case: creating the error of ParseInt is expensive
		return none
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return none
	}
	return n
}
