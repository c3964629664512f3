package objects

import (
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Decoder decodes recorded objects and caches the results. A history contains one version of an
// object up to three times (commit, delivery, response), usually within a second.
//
// If a fault skewed the timestamps in a version, its occurrences may differ. The Decoder then
// decodes each of them, and caches only the last result. A Decoder is not safe for concurrent
// use.
type Decoder struct {
	versionCache // contains *Pod, *Owner, *Deployment and *Service
	// generic contains *Generic. It is a separate cache, because callers may decode the
	// same version both by its kind and as a generic object.
	generic versionCache
	// Templates and selectors have separate caches, because the thousands of versions of an
	// owner usually share one template and one selector.
	templates parsedText[*Template]
	selectors map[*OwnerKind]parsedText[labels.Selector]
}

// versionCache contains decoded versions of objects. When it is full, it evicts the version
// that was added first.
type versionCache struct {
	decoded map[VersionKey]any
	oldest  []VersionKey // ring buffer of the keys of decoded, in the order of insertion
	next    int          // index in the ring buffer of the key to evict next, once the buffer is full
}

func newVersionCache() versionCache { return versionCache{decoded: map[VersionKey]any{}} }

// VersionKey identifies one version of an object. It is the key of the Decoder's caches.
type VersionKey struct {
	UID     types.UID
	Version history.Version
	Skewed  bool // a fault skewed the timestamps in this version
}

// decodedMax is the maximum number of cached versions. It is enough for the versions that a
// run creates in a few seconds.
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

// parsedText caches a decoded part of an object, such as a selector. The key is the JSON
// text of this part, so that each text is decoded once.
type parsedText[T any] map[string]T

// parsedTextMax is the maximum number of entries of a parsedText, which is emptied when it is
// full. A run has only a few different texts at a time.
const parsedTextMax = 1 << 10

// read returns the cached value for a JSON text. If there is none, it calls decode and caches
// the result.
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

// Decode decodes an object to the Go type that its row in package kube says:
// [kube.Kind.Decoding]. It returns nil for kinds without a row and for those that are decoded
// [kube.AsGeneric]. Use [Decoder.Generic] for these.
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
		return NewEndpoints(o), nil // not cached, because Endpoints are as large as all pods of the Service together
	}
	return nil, nil
}

// Pod decodes a pod, or returns it from the cache.
func (d *Decoder) Pod(o *history.Object) (*Pod, error) {
	return decodeOnce(&d.versionCache, o, decodePod)
}

// Deployment decodes a Deployment, or returns it from the cache.
func (d *Decoder) Deployment(o *history.Object) (*Deployment, error) {
	return decodeOnce(&d.versionCache, o, d.DecodeDeployment)
}

// Service decodes a Service, or returns it from the cache.
func (d *Decoder) Service(o *history.Object) (*Service, error) {
	return decodeOnce(&d.versionCache, o, decodeService)
}

// Owner decodes a ReplicaSet or ReplicationController, or returns it from the cache.
func (d *Decoder) Owner(kind *OwnerKind, o *history.Object) (*Owner, error) {
	return decodeOnce(&d.versionCache, o, func(o *history.Object) (*Owner, error) { return d.DecodeOwner(kind, o) })
}

// decodeOnce returns a version of an object from the cache, or decodes and caches it.
func decodeOnce[T any](c *versionCache, o *history.Object, decode func(*history.Object) (*T, error)) (*T, error) {
	if o.UID == "" || o.Version == 0 { // for example the object in a create request
		return decodeVersion(o, decode)
	}
	key := VersionKey{UID: o.UID, Version: o.Version, Skewed: o.Skewed}
	cached, again := c.decoded[key]
	// A skewed version may have different timestamps in each delivery, so it is decoded again.
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

// decodeVersion decodes an object without the cache. An error names the object and its
// version.
func decodeVersion[T any](o *history.Object, decode func(*history.Object) (*T, error)) (*T, error) {
	decoded, err := decode(o)
	if err != nil {
		return nil, fmt.Errorf("%s, version %d: %w", o.Ref, o.Version, err)
	}
	return decoded, nil
}

// evict removes a version if the cache is full, because the caller is about to add one. It
// records the key of the version to add.
func (c *versionCache) evict(key VersionKey) {
	if len(c.oldest) < decodedMax {
		c.oldest = append(c.oldest, key)
		return
	}
	delete(c.decoded, c.oldest[c.next])
	c.oldest[c.next] = key
	c.next = (c.next + 1) % decodedMax
}

// Cached returns a decoded version of an object. It returns nil if the Decoder has not
// decoded the version or has evicted it.
func Cached[T any](d *Decoder, uid types.UID, at history.Version) *T {
	version, ok := d.decoded[VersionKey{UID: uid, Version: at}].(*T)
	if !ok { // the version was delivered with skewed timestamps before its commit record
		version, _ = d.decoded[VersionKey{UID: uid, Version: at, Skewed: true}].(*T)
	}
	return version
}

// Unmarshal decodes JSON into the value to which into points. If the JSON text is empty,
// the value remains unchanged.
func Unmarshal(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return history.Unmarshal(raw, into)
}

// WholeNumber returns the integer in the value of an annotation. If the value is empty or no
// integer, it returns none.
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
