package interceptor

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

// skewedClock shifts timestamps in responses and watch events before the controller under test
// receives them. It shifts only timestamps that the API server or the nodes set.
type skewedClock struct {
	ahead atomic.Int64 // current shift in nanoseconds; negative if the API server's clock appears to be behind

	mu sync.Mutex
	// reporters contains the functions to call for each object that the controller under test
	// receives with shifted timestamps.
	reporters []*SkewReporter
	// serverTimes contains the original timestamps of each object that the controller under test
	// received during a shift. When the controller updates the object, the interceptor restores
	// these timestamps.
	serverTimes map[types.UID]serverTimes
}

// serverTimes contains the creationTimestamp and deletionTimestamp of an object as the API server
// set them. A clock-skew fault shifts these timestamps. The field deleting is the zero time if the
// object is not being deleted.
type serverTimes struct{ created, deleting metav1.Time }

// SkewReporter is a function that the interceptor calls for each object that the controller under
// test receives with shifted timestamps. Many goroutines call it concurrently.
//
// The parameter request is the ID of the request that returned the object. For a watch event,
// request is the ID of the watch request.
type SkewReporter func(request uint64, object *history.Ref)

// requestRef identifies the request with which the controller under test received an object. The
// interceptor passes the ID to a [SkewReporter], and the resource as a part of the object's Ref.
type requestRef struct {
	id       uint64
	resource string
}

// SkewClock makes the clock of the API server and the nodes appear to be ahead. From now on, the
// interceptor adds the duration ahead to timestamps in every response and watch event. A
// negative duration makes the clock appear to be behind.
//
// SkewClock shifts the creationTimestamp and deletionTimestamp of all objects. It also shifts all
// timestamps in the status of pods, and the timestamps in the conditions of nodes. It does not
// shift managedFields, or timestamps that other clients such as the controller under test set.
// When the controller updates an object, the interceptor restores the original creationTimestamp
// and deletionTimestamp.
//
// API timestamps have a resolution of one second. If the duration is no whole number of seconds,
// the interceptor shifts some timestamps by one more second than others. For example, a shift of
// 1.3 s moves about 30 % of the timestamps by 2 s, and the others by 1 s. Equal timestamps are
// always shifted by the same amount, and the order of timestamps is kept.
//
// The interceptor calls the function report for each object with shifted timestamps. The returned
// function restore ends the shift and may be called more than once. After restore has returned, the
// interceptor may still call report for responses in flight.
func (i *Interceptor) SkewClock(ahead time.Duration, report SkewReporter) (restore func()) {
	i.skew.mu.Lock()
	i.skew.reporters = append(i.skew.reporters, &report)
	i.skew.mu.Unlock()
	i.skew.ahead.Add(int64(ahead))
	return sync.OnceFunc(func() {
		i.skew.ahead.Add(-int64(ahead))
		i.skew.mu.Lock()
		defer i.skew.mu.Unlock()
		i.skew.reporters = slices.DeleteFunc(slices.Clone(i.skew.reporters), func(other *SkewReporter) bool { return other == &report })
	})
}

// report calls every SkewReporter for one object that the controller under test receives with
// shifted timestamps.
func (s *skewedClock) report(request requestRef, m metav1.Object) {
	s.mu.Lock()
	reporters := s.reporters
	s.mu.Unlock()
	ref := history.Ref{Resource: request.resource, Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID()}
	for _, report := range reporters {
		object := ref
		(*report)(request.id, &object)
	}
}

// offset returns the time by which timestamps are currently shifted. It is the sum of the shifts of
// all active clock-skew faults.
func (s *skewedClock) offset() time.Duration { return time.Duration(s.ahead.Load()) }

// skewTime returns the timestamp that a clock would have set if the clock had been ahead by the
// given duration.
//
// API timestamps contain no fraction of a second. skewTime therefore assumes a fraction: for
// example, that the clock was at 12:00:05.3 when it set 12:00:05. The fraction depends only on the
// argument t, so equal timestamps give equal results.
func skewTime(t time.Time, ahead time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	second := t.Unix()
	hash := fnv.New32a()
	fmt.Fprint(hash, second)
	fraction := float64(hash.Sum32()) / (math.MaxUint32 + 1.0) // assumed fraction of the second at which the timestamp was set
	return time.Unix(second+int64(math.Floor(fraction+ahead.Seconds())), 0).In(t.Location())
}

// skewAll shifts the timestamps of an object, or of all items of a list. The bool result is false
// only for a Status, which contains no timestamps.
func (s *skewedClock) skewAll(request requestRef, obj runtime.Object, ahead time.Duration) (bool, error) {
	if _, status := obj.(*metav1.Status); status {
		return false, nil
	}
	if meta.IsListType(obj) {
		return true, meta.EachListItem(obj, func(item runtime.Object) error { return s.skewObject(request, item, ahead) })
	}
	return true, s.skewObject(request, obj, ahead)
}

// skewObject shifts the timestamps of one object. It first stores the original creationTimestamp
// and deletionTimestamp, so that restoreTimes can restore them.
func (s *skewedClock) skewObject(request requestRef, obj runtime.Object, ahead time.Duration) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("fault clock-skew: shifting the timestamps of an object of %s: %w", request.resource, err)
	}
	original := serverTimes{created: m.GetCreationTimestamp()}
	created := original.created
	times := append(statusTimes(obj), &created)
	deleting := m.GetDeletionTimestamp()
	if deleting != nil {
		original.deleting = *deleting
		times = append(times, deleting)
	}
	s.recordServerTimes(m.GetUID(), original)
	shifted := false
	for _, t := range times {
		skewed := metav1.Time{Time: skewTime(t.Time, ahead)}
		shifted = shifted || !skewed.Equal(t)
		*t = skewed
	}
	m.SetCreationTimestamp(created)
	m.SetDeletionTimestamp(deleting)
	if shifted {
		s.report(request, m)
	}
	return nil
}

// recordServerTimes stores an object's original creationTimestamp and deletionTimestamp.
//
// The controller under test may receive an older version of an object that is already being
// deleted. If the argument original has no deletionTimestamp, recordServerTimes keeps the stored
// one.
func (s *skewedClock) recordServerTimes(uid types.UID, original serverTimes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serverTimes == nil {
		s.serverTimes = map[types.UID]serverTimes{}
	}
	if original.deleting.IsZero() {
		original.deleting = s.serverTimes[uid].deleting
	}
	s.serverTimes[uid] = original
}

// statusTimes returns the timestamps in the status of a pod or node. For other kinds, it returns
// nil, because the controller under test itself may set the timestamps in their status.
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

// stateTimes returns pointers to the timestamps in a container's state, such as startedAt.
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

// restoreTimes restores the original creationTimestamp and deletionTimestamp of an object that the
// controller under test writes. It reports whether it changed one of these timestamps.
func (s *skewedClock) restoreTimes(obj runtime.Object) bool {
	m, err := meta.Accessor(obj)
	if err != nil {
		return false
	}
	s.mu.Lock()
	original, known := s.serverTimes[m.GetUID()]
	s.mu.Unlock()
	if !known {
		return false
	}
	changed := false
	if created := m.GetCreationTimestamp(); !created.IsZero() && !created.Equal(&original.created) {
		m.SetCreationTimestamp(original.created)
		changed = true
	}
	if deleting := m.GetDeletionTimestamp(); deleting != nil && !original.deleting.IsZero() && !deleting.Equal(&original.deleting) {
		m.SetDeletionTimestamp(&original.deleting)
		changed = true
	}
	return changed
}

// restoreBody returns the body of the update t with the original creationTimestamp and deletionTimestamp.
// If the controller under test never received shifted timestamps, restoreBody returns the body
// unchanged.
func (s *skewedClock) restoreBody(t *target, in encoding, body []byte) ([]byte, error) {
	s.mu.Lock()
	unused := len(s.serverTimes) == 0
	s.mu.Unlock()
	if unused {
		return body, nil
	}
	obj, err := t.decodeRequest(in, body)
	if err != nil || !s.restoreTimes(obj) {
		return body, err
	}
	return encode(in, obj)
}

// skewBody shifts the timestamps in a response body. The bool result is true if the returned
// body has shifted timestamps.
//
// skewBody returns the body unchanged if no clock-skew fault is active. It does the same if the
// body is empty, is a Status or cannot be decoded.
func (s *skewedClock) skewBody(request requestRef, in encoding, body []byte) ([]byte, bool, error) {
	ahead := s.offset()
	if ahead == 0 || len(body) == 0 {
		return body, false, nil
	}
	obj, err := decode(in, body)
	if err != nil {
		return body, false, err
	}
	hasTimes, err := s.skewAll(request, obj, ahead)
	if err != nil || !hasTimes {
		return body, false, err
	}
	skewed, err := encode(in, obj)
	return skewed, true, err
}

// skewEvent shifts the timestamps in a watch event. The bool result is true if the returned
// event has shifted timestamps.
//
// skewEvent returns the event unchanged if no clock-skew fault is active, or if the event
// contains no object.
func (s *skewedClock) skewEvent(request requestRef, in encoding, frame []byte) ([]byte, bool, error) {
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
	if err := s.skewObject(request, obj, ahead); err != nil {
		return frame, false, err
	}
	skewed, err := encodeEvent(in, history.EventType(event.Type), obj)
	return skewed, true, err
}

// decodeEvent returns the watch event in the argument frame, but leaves the object in the event
// encoded. The frame contains the event's bytes in the stream; the bytes of a protobuf event begin
// with its length.
func decodeEvent(in encoding, frame []byte) (event metav1.WatchEvent, err error) {
	switch in {
	case jsonEncoding:
		err = json.Unmarshal(frame, &event)
	case protobufEncoding:
		err = event.Unmarshal(frame[frameHeaderBytes:])
	}
	return event, err
}

// encode returns the bytes of an object in the given encoding, such as protobuf.
func encode(in encoding, obj runtime.Object) ([]byte, error) {
	codec, ok := codecs[in]
	if !ok {
		return nil, fmt.Errorf("encoding an object of type %T: the content type is neither JSON nor protobuf", obj)
	}
	var body bytes.Buffer
	if err := codec.Encode(obj, &body); err != nil {
		return nil, fmt.Errorf("encoding an object of type %T: %w", obj, err)
	}
	return body.Bytes(), nil
}
