package check

import (
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// decoder decodes recorded objects and caches the results. One version is recorded up to
// three times (commit, delivery, response), usually within a second. For objects with
// skewed timestamps, it keeps only the last result.
type decoder struct {
	decoded map[versionKey]any // *pod, *owner, *deployment or *service
	oldest  []versionKey       // a ring of the keys of decoded
	next    int
	// An owner has thousands of versions, and usually one pod template and one selector.
	templates parsedText[*template]
	selectors map[*ownerKind]parsedText[labels.Selector]
}

type versionKey struct {
	uid    types.UID
	at     history.Version
	skewed bool // its timestamps were skewed by a fault
}

// decodedMax is how many decoded versions are cached, enough for a few seconds.
const decodedMax = 1 << 14

func newDecoder() *decoder {
	d := &decoder{decoded: map[versionKey]any{}, templates: parsedText[*template]{}, selectors: map[*ownerKind]parsedText[labels.Selector]{}}
	for i := range ownerKinds {
		d.selectors[&ownerKinds[i]] = parsedText[labels.Selector]{}
	}
	return d
}

// parsedText caches parsed parts of objects by their JSON text, so that each text is
// parsed once.
type parsedText[T any] map[string]T

// parsedTextMax bounds the entries; a run has a few at a time.
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

// decode decodes an object of a kind that checkers read. It returns nil for other kinds.
func (d *decoder) decode(o *history.Object) (any, error) {
	if kind := kindByResource(o.Resource); kind != nil {
		return d.owner(kind, o)
	}
	switch o.Resource {
	case podResource:
		return d.pod(o)
	case deploymentResource:
		return decodeOnce(d, o, d.decodeDeployment)
	case serviceResource:
		return decodeOnce(d, o, decodeService)
	case endpointsResource:
		return newEndpoints(o), nil // not cached: as large as all pods of the Service together
	}
	return nil, nil
}

// pod decodes a pod.
func (d *decoder) pod(o *history.Object) (*pod, error) { return decodeOnce(d, o, decodePod) }

// owner decodes an owner of the given kind.
func (d *decoder) owner(kind *ownerKind, o *history.Object) (*owner, error) {
	return decodeOnce(d, o, func(o *history.Object) (*owner, error) { return d.decodeOwner(kind, o) })
}

func decodeOnce[T any](d *decoder, o *history.Object, decode func(*history.Object) (*T, error)) (*T, error) {
	key := versionKey{uid: o.UID, at: o.Version, skewed: o.Skewed}
	cached, again := d.decoded[key]
	if version, ok := cached.(*T); ok && !o.Skewed { // a skewed version may be delivered with different timestamps each time
		return version, nil
	}
	decoded, err := decode(o)
	if err != nil {
		return nil, fmt.Errorf("%s, version %d: %w", o.Ref, o.Version, err)
	}
	if !again {
		d.evict(key)
	}
	d.decoded[key] = decoded
	return decoded, nil
}

// evict makes room for a version that is to be cached.
func (d *decoder) evict(key versionKey) {
	if len(d.oldest) < decodedMax {
		d.oldest = append(d.oldest, key)
		return
	}
	delete(d.decoded, d.oldest[d.next])
	d.oldest[d.next] = key
	d.next = (d.next + 1) % decodedMax
}

// recentlyDecoded returns a decoded version of an object if it is still cached, else nil.
func recentlyDecoded[T any](d *decoder, uid types.UID, at history.Version) *T {
	version, ok := d.decoded[versionKey{uid: uid, at: at}].(*T)
	if !ok { // it was delivered with skewed timestamps, and its commit record is still to come
		version, _ = d.decoded[versionKey{uid: uid, at: at, skewed: true}].(*T)
	}
	return version
}

// unmarshalSome decodes raw. It leaves the target unchanged if raw is empty.
func unmarshalSome(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return history.Unmarshal(raw, into)
}

// wholeNumber parses an annotation. It returns none if the annotation is missing or
// invalid.
func wholeNumber(s string, none int64) int64 {
	if s == "" { // the most frequent case, and ParseInt's error is expensive
		return none
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return none
	}
	return n
}
