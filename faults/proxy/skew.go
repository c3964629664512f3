package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// skewedClock is that of the API server and the nodes, as the subject sees it by the
// times that they set.
type skewedClock struct {
	ahead atomic.Int64 // in nanoseconds; negative: behind

	mu sync.Mutex
	// reporters are those who set the clock, and hear of what it does.
	reporters []*SkewReporter
	// serverTimes are the times that the API server really set of objects which the subject
	// was shown with others: what it writes back must not change them.
	serverTimes map[types.UID]serverTimes
}

type serverTimes struct{ created, deleting metav1.Time }

// SkewReporter is told whenever an object was shown with times that were moved, and in
// answer to which request. It is called by whoever shows it, from many goroutines.
type SkewReporter func(request uint64, object *history.Ref)

// requestRef is what an object is shown for: the request, and the resource that it asks
// for.
type requestRef struct {
	request  uint64
	resource string
}

// SkewClock moves, from now on, the times that the API server and the nodes set in
// whatever the subject is shown: creationTimestamp and deletionTimestamp of every
// object, and all times in the status of pods and of nodes' conditions. What others
// set, the subject above all, is left alone, and so is the record of who manages
// which field. What the subject writes back has the times that were really set.
//
// Those times have whole seconds. A clock that is ahead by less shows another second
// than it would for a part of every second only: so many of the seconds, always the
// same ones, are shown one later. No two times are shown in another order.
//
// Restore sets the clock right for what is shown from then on. It may be called more
// than once; what was being shown meanwhile may still be told of.
func (p *Proxy) SkewClock(ahead time.Duration, tell SkewReporter) (restore func()) {
	p.skew.mu.Lock()
	p.skew.reporters = append(p.skew.reporters, &tell)
	p.skew.mu.Unlock()
	p.skew.ahead.Add(int64(ahead))
	return sync.OnceFunc(func() {
		p.skew.ahead.Add(-int64(ahead))
		p.skew.mu.Lock()
		defer p.skew.mu.Unlock()
		p.skew.reporters = slices.DeleteFunc(slices.Clone(p.skew.reporters), func(other *SkewReporter) bool { return other == &tell })
	})
}

// report tells of an object whose times were moved.
func (s *skewedClock) report(to requestRef, m metav1.Object) {
	s.mu.Lock()
	all := s.reporters
	s.mu.Unlock()
	ref := history.Ref{Resource: to.resource, Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID()}
	for _, tell := range all {
		of := ref
		(*tell)(to.request, &of)
	}
}

// offset is how far the clock is ahead at the moment.
func (s *skewedClock) offset() time.Duration { return time.Duration(s.ahead.Load()) }

// skewTime is a time as a clock shows it that is ahead by so much.
func skewTime(t time.Time, ahead time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	second := t.Unix()
	hash := fnv.New32a()
	fmt.Fprint(hash, second)
	fraction := float64(hash.Sum32()) / (math.MaxUint32 + 1.0) // of the second, at which it was set
	return time.Unix(second+int64(math.Floor(fraction+ahead.Seconds())), 0).In(t.Location())
}

// skewAll moves the times of what the subject is about to be shown: an object, or the
// items of a list. It reports whether there is anything in it whose times are.
func (s *skewedClock) skewAll(to requestRef, obj runtime.Object, ahead time.Duration) (bool, error) {
	if _, status := obj.(*metav1.Status); status {
		return false, nil
	}
	if meta.IsListType(obj) {
		return true, meta.EachListItem(obj, func(item runtime.Object) error { return s.skewObject(to, item, ahead) })
	}
	return true, s.skewObject(to, obj, ahead)
}

func (s *skewedClock) skewObject(to requestRef, obj runtime.Object, ahead time.Duration) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("moving the times of an object: %w", err)
	}
	was := serverTimes{created: m.GetCreationTimestamp()}
	created := was.created
	times := append(statusTimes(obj), &created)
	deleting := m.GetDeletionTimestamp()
	if deleting != nil {
		was.deleting = *deleting
		times = append(times, deleting)
	}
	s.recordServerTimes(m.GetUID(), was)
	moved := false
	for _, t := range times {
		as := metav1.Time{Time: skewTime(t.Time, ahead)}
		moved = moved || !as.Equal(t)
		*t = as
	}
	m.SetCreationTimestamp(created)
	m.SetDeletionTimestamp(deleting)
	if moved {
		s.report(to, m)
	}
	return nil
}

// recordServerTimes notes the times that were really set of an object. One that is said to be
// deleted goes on being so, whatever an older version says that is shown after it.
func (s *skewedClock) recordServerTimes(uid types.UID, was serverTimes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serverTimes == nil {
		s.serverTimes = map[types.UID]serverTimes{}
	}
	if was.deleting.IsZero() {
		was.deleting = s.serverTimes[uid].deleting
	}
	s.serverTimes[uid] = was
}

// statusTimes are the times in an object's status that the API server or a node sets.
func statusTimes(obj runtime.Object) []*metav1.Time {
	var all []*metav1.Time
	switch o := obj.(type) {
	case *corev1.Pod:
		if o.Status.StartTime != nil {
			all = append(all, o.Status.StartTime)
		}
		for i := range o.Status.Conditions {
			all = append(all, &o.Status.Conditions[i].LastTransitionTime, &o.Status.Conditions[i].LastProbeTime)
		}
		for _, containers := range [][]corev1.ContainerStatus{o.Status.InitContainerStatuses, o.Status.ContainerStatuses, o.Status.EphemeralContainerStatuses} {
			for i := range containers {
				all = append(all, stateTimes(&containers[i].State)...)
				all = append(all, stateTimes(&containers[i].LastTerminationState)...)
			}
		}
	case *corev1.Node:
		for i := range o.Status.Conditions {
			all = append(all, &o.Status.Conditions[i].LastTransitionTime, &o.Status.Conditions[i].LastHeartbeatTime)
		}
	}
	return all
}

func stateTimes(s *corev1.ContainerState) []*metav1.Time {
	var all []*metav1.Time
	if s.Running != nil {
		all = append(all, &s.Running.StartedAt)
	}
	if s.Terminated != nil {
		all = append(all, &s.Terminated.StartedAt, &s.Terminated.FinishedAt)
	}
	return all
}

// restoreTimes gives an object that the subject writes the times that were really set,
// and reports whether they were others.
func (s *skewedClock) restoreTimes(obj runtime.Object) bool {
	m, err := meta.Accessor(obj)
	if err != nil {
		return false
	}
	s.mu.Lock()
	was, known := s.serverTimes[m.GetUID()]
	s.mu.Unlock()
	if !known {
		return false
	}
	changed := false
	if created := m.GetCreationTimestamp(); !created.IsZero() && !created.Equal(&was.created) {
		m.SetCreationTimestamp(was.created)
		changed = true
	}
	if deleting := m.GetDeletionTimestamp(); deleting != nil && !was.deleting.IsZero() && !deleting.Equal(&was.deleting) {
		m.SetDeletionTimestamp(&was.deleting)
		changed = true
	}
	return changed
}

// restoreBody is the body of a request with the times that were really set.
func (s *skewedClock) restoreBody(in encoding, body []byte) ([]byte, error) {
	s.mu.Lock()
	unused := len(s.serverTimes) == 0
	s.mu.Unlock()
	if unused {
		return body, nil
	}
	obj, err := decode(in, body)
	if err != nil || !s.restoreTimes(obj) {
		return body, err
	}
	return encode(in, obj)
}

// skewBody is the body of an answer as the subject is shown it, and whether its times
// were moved.
func (s *skewedClock) skewBody(to requestRef, in encoding, body []byte) ([]byte, bool, error) {
	ahead := s.offset()
	if ahead == 0 || len(body) == 0 {
		return body, false, nil
	}
	obj, err := decode(in, body)
	if err != nil {
		return body, false, err
	}
	moved, err := s.skewAll(to, obj, ahead)
	if err != nil || !moved {
		return body, false, err
	}
	shown, err := encode(in, obj)
	return shown, true, err
}

// skewEvent is a frame of a watch stream as the subject is shown it, and whether
// its times were moved.
func (s *skewedClock) skewEvent(to requestRef, in encoding, frame []byte) ([]byte, bool, error) {
	ahead := s.offset()
	if ahead == 0 {
		return frame, false, nil
	}
	event, err := decodeEvent(in, frame)
	if err != nil || !history.EventType(event.Type).HasObject() {
		return frame, false, err
	}
	obj, err := decode(in, event.Object.Raw)
	if err != nil {
		return frame, false, err
	}
	if err := s.skewObject(to, obj, ahead); err != nil {
		return frame, false, err
	}
	shown, err := encodeEvent(in, history.EventType(event.Type), obj)
	return shown, true, err
}

// decodeEvent reads the frame of a watch event, the object yet to be decoded.
func decodeEvent(in encoding, frame []byte) (event metav1.WatchEvent, err error) {
	switch in {
	case jsonEncoding:
		err = json.Unmarshal(frame, &event)
	case protobufEncoding:
		err = event.Unmarshal(frame[frameHeaderBytes:])
	}
	return event, err
}

// encode writes one object.
func encode(in encoding, obj runtime.Object) ([]byte, error) {
	codec, ok := codecs[in]
	if !ok {
		return nil, fmt.Errorf("an object for a body of an unknown content type")
	}
	var body bytes.Buffer
	if err := codec.Encode(obj, &body); err != nil {
		return nil, fmt.Errorf("encoding an object: %w", err)
	}
	return body.Bytes(), nil
}
