package objects

import (
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Decoder decodes recorded objects and caches the results. One version is recorded up to
// three times (commit, delivery, response), usually within a second. For objects with
// skewed timestamps, it caches only the last result. It is not safe for concurrent use.
type Decoder struct {
	versionCache // *Pod, *Owner, *Deployment or *Service
	// generic contains *Generic. It is a cache of its own, because an object can be decoded
	// both by its kind and as a generic object.
	generic versionCache
	// Templates and selectors have caches of their own, because the thousands of versions
	// of an owner usually share one template and one selector.
	templates parsedText[*Template]
	selectors map[*OwnerKind]parsedText[labels.Selector]
}

// versionCache contains decoded versions of objects. It evicts the oldest version.
type versionCache struct {
	decoded map[VersionKey]any
	oldest  []VersionKey // a ring of the keys of decoded
	next    int
}

func newVersionCache() versionCache { return versionCache{decoded: map[VersionKey]any{}} }

// VersionKey identifies a version of an object, and is the key under which a Decoder caches
// it.
type VersionKey struct {
	UID     types.UID
	Version history.Version
	Skewed  bool // its timestamps were skewed by a fault
}

// decodedMax is the maximum number of cached versions. It suffices for the versions of a
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

// parsedText caches parsed parts of objects by their JSON text, so that each text is
// parsed once.
type parsedText[T any] map[string]T

// parsedTextMax is the maximum number of entries of a parsedText. A run has only a few
// different texts at a time.
const parsedTextMax = 1 << 10

func (t parsedText[T]) read(raw json.RawMessage, read func(json.RawMessage) (T, error)) (T, error) {
	if value, ok := t[string(raw)]; ok {
		return value, nil
	}
	value, err := read(raw)
	if err != nil {
		return value, err
	}
	if len(t) >= parsedTextMax {
		clear(t)
	}
	t[string(raw)] = value
	return value, nil
}

// Decode decodes an object of a kind with a type of its own in this package. It returns nil
// for other kinds. Use [Decoder.Generic] for these.
func (d *Decoder) Decode(o *history.Object) (any, error) {
	if kind := OwnerKindByResource(o.Resource); kind != nil {
		return d.Owner(kind, o)
	}
	switch o.Resource {
	case PodResource:
		return d.Pod(o)
	case DeploymentResource:
		return d.Deployment(o)
	case ServiceResource:
		return d.Service(o)
	case EndpointsResource:
		return NewEndpoints(o), nil // not cached: as large as all pods of the Service together
	}
	return nil, nil
}

// Pod decodes a pod.
func (d *Decoder) Pod(o *history.Object) (*Pod, error) {
	return decodeOnce(&d.versionCache, o, decodePod)
}

// Deployment decodes a Deployment.
func (d *Decoder) Deployment(o *history.Object) (*Deployment, error) {
	return decodeOnce(&d.versionCache, o, d.DecodeDeployment)
}

// Service decodes a Service.
func (d *Decoder) Service(o *history.Object) (*Service, error) {
	return decodeOnce(&d.versionCache, o, decodeService)
}

// Owner decodes an owner of the given kind.
func (d *Decoder) Owner(kind *OwnerKind, o *history.Object) (*Owner, error) {
	return decodeOnce(&d.versionCache, o, func(o *history.Object) (*Owner, error) { return d.DecodeOwner(kind, o) })
}

func decodeOnce[T any](c *versionCache, o *history.Object, decode func(*history.Object) (*T, error)) (*T, error) {
	if o.UID == "" || o.Version == 0 { // such as the object of a create request
		return decodeVersion(o, decode)
	}
	key := VersionKey{UID: o.UID, Version: o.Version, Skewed: o.Skewed}
	cached, again := c.decoded[key]
	if version, ok := cached.(*T); ok && !o.Skewed { // a skewed version may be delivered with different timestamps each time
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

// decodeVersion decodes an object without the cache.
func decodeVersion[T any](o *history.Object, decode func(*history.Object) (*T, error)) (*T, error) {
	decoded, err := decode(o)
	if err != nil {
		return nil, fmt.Errorf("%s, version %d: %w", o.Ref, o.Version, err)
	}
	return decoded, nil
}

// evict makes room for the version that the caller is about to add.
func (c *versionCache) evict(key VersionKey) {
	if len(c.oldest) < decodedMax {
		c.oldest = append(c.oldest, key)
		return
	}
	delete(c.decoded, c.oldest[c.next])
	c.oldest[c.next] = key
	c.next = (c.next + 1) % decodedMax
}

// Cached returns a decoded version of an object if it is still cached, else nil.
func Cached[T any](d *Decoder, uid types.UID, at history.Version) *T {
	version, ok := d.decoded[VersionKey{UID: uid, Version: at}].(*T)
	if !ok { // it was delivered with skewed timestamps, and its commit record is still to come
		version, _ = d.decoded[VersionKey{UID: uid, Version: at, Skewed: true}].(*T)
	}
	return version
}

// Unmarshal decodes a part of an object from JSON. If the JSON text is empty, the target
// remains unchanged.
func Unmarshal(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return history.Unmarshal(raw, into)
}

// WholeNumber parses an annotation. If the annotation is missing or invalid, it returns the
// value of the parameter none.
func WholeNumber(s string, none int64) int64 {
	if s == "" { // the most frequent case, and ParseInt's error is expensive
		return none
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return none
	}
	return n
}
