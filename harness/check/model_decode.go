package check

import (
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// decoder turns recorded objects into pods and owners. One version is recorded
// up to three times (truth, delivery, response), most often within a moment, so
// the decoder remembers as many as it decoded last. Of what was shown with times that
// were moved it remembers how it was shown last.
type decoder struct {
	decoded map[versionKey]any // *pod, *owner, *deployment or *service
	oldest  []versionKey       // a ring of the keys of known
	next    int
	// An owner has one pod template and one selector, and thousands of versions.
	templates parsedText[*template]
	selectors map[*ownerKind]parsedText[labels.Selector]
}

type versionKey struct {
	uid    types.UID
	at     history.Version
	skewed bool // as it was shown, its times moved
}

// decodedMax is how many decoded versions are remembered: a few seconds' worth.
const decodedMax = 1 << 14

func newDecoder() *decoder {
	d := &decoder{decoded: map[versionKey]any{}, templates: parsedText[*template]{}, selectors: map[*ownerKind]parsedText[labels.Selector]{}}
	for i := range ownerKinds {
		d.selectors[&ownerKinds[i]] = parsedText[labels.Selector]{}
	}
	return d
}

// parsedText is what has been read of parts of objects, by how they are written, so that
// each is read once.
type parsedText[T any] map[string]T

// parsedTextMax is how many are held; a run has a few at a time.
const parsedTextMax = 1 << 10

func (t parsedText[T]) read(raw json.RawMessage, read func(json.RawMessage) (T, error)) (T, error) {
	if known, ok := t[string(raw)]; ok {
		return known, nil
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

// decode decodes an object of a kind that the checks look at; nil if it is of
// another.
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
		return newEndpoints(o), nil // as large as all pods together, so that it is not kept
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
	known, again := d.decoded[key]
	if known, ok := known.(*T); ok && !o.Skewed { // clocks differ from time to time, and so does what they show
		return known, nil
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

// evict makes room for a version that is to be remembered.
func (d *decoder) evict(key versionKey) {
	if len(d.oldest) < decodedMax {
		d.oldest = append(d.oldest, key)
		return
	}
	delete(d.decoded, d.oldest[d.next])
	d.oldest[d.next] = key
	d.next = (d.next + 1) % decodedMax
}

// recentlyDecoded returns a version of an object that was decoded of late, nil if it is
// not to be had.
func recentlyDecoded[T any](d *decoder, uid types.UID, at history.Version) *T {
	known, ok := d.decoded[versionKey{uid: uid, at: at}].(*T)
	if !ok { // it was shown before it was witnessed
		known, _ = d.decoded[versionKey{uid: uid, at: at, skewed: true}].(*T)
	}
	return known
}

// unmarshalSome leaves into alone when there is nothing to read.
func unmarshalSome(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return history.Unmarshal(raw, into)
}

// wholeNumber reads an annotation; one that is missing or no number is none.
func wholeNumber(s string, none int64) int64 {
	if s == "" { // most often, and an error is costly
		return none
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return none
	}
	return n
}
