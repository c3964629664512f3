package history

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// BenchmarkParse compares the speed of decodeFast with that of Unmarshal. It decodes the same
// lines with both decoders in turn, and reports the median of the ratios of their times.
func BenchmarkParse(b *testing.B) {
	const pairs = 9
	lines := recordedLines(b, 2000)
	s := new(scanner)
	fast := func(i int) error {
		_, err := parse(s, lines[i], int64(i+1))
		return err
	}
	library := func(i int) error { return Unmarshal(lines[i], new(Record)) }
	for b.Loop() {
		var ratios, parseTimes, libraryTimes []float64
		for range pairs {
			libraryTime, parseTime := timeLines(b, len(lines), library), timeLines(b, len(lines), fast)
			libraryTimes, parseTimes = append(libraryTimes, libraryTime), append(parseTimes, parseTime)
			ratios = append(ratios, libraryTime/parseTime)
		}
		b.ReportMetric(median(ratios), "library/parse")
		b.ReportMetric(median(parseTimes), "parse-ns/line")
		b.ReportMetric(median(libraryTimes), "library-ns/line")
	}
}

// timeLines returns how many nanoseconds the function decode takes on average for each of count
// lines.
func timeLines(b *testing.B, count int, decode func(i int) error) float64 {
	b.Helper()
	start := time.Now()
	for i := range count {
		if err := decode(i); err != nil {
			b.Fatal(err)
		}
	}
	return float64(time.Since(start).Nanoseconds()) / float64(count)
}

func median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// recordedLines returns the lines of a history in which the controllers under test create the given
// number of pods. For each pod, the history has a request, a response, a commit and a delivery.
func recordedLines(b *testing.B, pods int) [][]byte {
	b.Helper()
	path := filepath.Join(b.TempDir(), "history.jsonl")
	recorder, err := Create(path, Start{Scenario: "benchmark"}, clock.RealClock{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range pods {
		object := recordedPod(b, i)
		id := uint64(i + 1)
		recorder.Append(Record{Request: &Request{ID: id, Subject: "subject-0", Verb: "create", Resource: "pods", Namespace: "gauntlet", Object: &object, Bytes: 900}})
		recorder.Append(Record{Commit: &Commit{Type: Added, Object: object}})
		recorder.Append(Record{Delivery: &Delivery{ID: 1, Subject: "subject-0", Resource: "pods", Type: Added, Object: object, Bytes: 1400}})
		recorder.Append(Record{Response: &Response{ID: id, Code: 201, ServerCode: 201, Reached: true, Object: &object, Bytes: 1300}})
	}
	if err := recorder.Close(); err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return slices.Collect(bytes.Lines(text))
}

// recordedPod returns the i-th pod of a ReplicaSet, in the form that histories store.
func recordedPod(b *testing.B, i int) Object {
	b.Helper()
	name := fmt.Sprintf("web-%05d", i)
	isController := true
	object, err := Project("pods", &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "gauntlet", Name: name, GenerateName: "web-", UID: types.UID("uid-" + name), ResourceVersion: fmt.Sprint(1000 + i),
			CreationTimestamp: metav1.Unix(1_800_000_000, 0), Labels: map[string]string{"app": "web", "pod-template-hash": "5d4f8c7b9"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "uid-web", Controller: &isController}},
		},
		Spec:   corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return object
}
