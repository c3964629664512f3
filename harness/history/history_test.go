package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func create(t *testing.T, path string, followers ...func(*Record)) (*Recorder, *clocktesting.FakePassiveClock) {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(epoch)
	recorder, err := Create(path, Start{Scenario: "s", Namespace: "n", Controllers: []string{"statefulset-controller"}}, clock, followers...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { recorder.Close() })
	return recorder, clock
}

func readAll(path string) ([]*Record, error) {
	var records []*Record
	for record, err := range ReadFile(path) {
		if err != nil {
			return records, err
		}
		records = append(records, record)
	}
	return records, nil
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	recorder, clock := create(t, path)
	clock.SetTime(epoch.Add(1500 * time.Millisecond))
	pod := Object{
		Ref:      Ref{Resource: "pods", Namespace: "n", Name: "web-1", UID: "u1", Version: 7},
		Created:  epoch,
		Deleting: epoch.Add(time.Second),
		Owners:   []Owner{{Kind: "ReplicaSet", Name: "web", UID: "u0", Controller: true}},
		Body:     []byte(`{"status":{"phase":"Running"}}`),
	}
	recorder.Append(Record{Commit: &Commit{Type: Added, Object: pod}})
	recorder.Append(Record{Response: &Response{ID: 3, Code: 500, Reached: true, Fault: "api-error"}})
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := readAll(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []*Record{
		{Seq: 1, Start: &Start{Format: Format, Time: epoch, Scenario: "s", Namespace: "n", Controllers: []string{"statefulset-controller"}, Ends: true}},
		{Seq: 2, At: 1500 * time.Millisecond, Commit: &Commit{Type: Added, Object: pod}},
		{Seq: 3, At: 1500 * time.Millisecond, Response: &Response{ID: 3, Code: 500, Reached: true, Fault: "api-error"}},
		{Seq: 4, At: 1500 * time.Millisecond, End: &End{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestFollowersSeeFileOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	var followed []int64
	recorder, _ := create(t, path, func(r *Record) { followed = append(followed, r.Seq) })
	const writers, each = 8, 200
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for range each {
				recorder.Append(Record{Process: &Process{Name: fmt.Sprint(w), Event: ProcessStarted}})
			}
		})
	}
	group.Wait()
	if err := recorder.Flush(); err != nil {
		t.Fatal(err)
	}
	if len(followed) != 1+writers*each {
		t.Fatalf("the follower received %d records before Flush returned, want %d", len(followed), 1+writers*each)
	}
	records, err := readAll(path) // after Flush, the file contains all records although the recorder is still open
	if !errors.Is(err, ErrTruncated) || len(records) != len(followed) {
		t.Fatalf("%d records, error %v; want %d and no end record", len(records), err, len(followed))
	}
	for i, record := range records {
		if record.Seq != followed[i] {
			t.Fatalf("position %d: record %d in the file, %d seen by the follower", i, record.Seq, followed[i])
		}
	}
}

// TestPayloads requires that the method payloads counts each pointer of a Record.
func TestPayloads(t *testing.T) {
	for i := range reflect.TypeFor[Record]().NumField() {
		var r Record
		field := reflect.ValueOf(&r).Elem().Field(i)
		if field.Kind() != reflect.Pointer {
			continue
		}
		field.Set(reflect.New(field.Type().Elem()))
		if r.payloads() != 1 {
			t.Errorf("a record with only %s set has %d payloads, want 1", reflect.TypeFor[Record]().Field(i).Name, r.payloads())
		}
	}
}

func TestAppendAfterClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	recorder, _ := create(t, path)
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	recorder.Append(Record{Phase: &Phase{Name: PhaseEnd}})
	if err := recorder.Flush(); err != nil {
		t.Fatal(err)
	}
	if records, err := readAll(path); err != nil || len(records) != 2 {
		t.Errorf("%d records, error %v; want the start and the end record alone", len(records), err)
	}
}

func TestCreateFailsIfFileExists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	if err := os.WriteFile(path, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, Start{}, clocktesting.NewFakePassiveClock(epoch)); !errors.Is(err, os.ErrExist) {
		t.Errorf("error %v, want os.ErrExist", err)
	}
}

// TestRecordsReachFile checks that a record is in the file soon, without a call of Flush or Close. A
// panic of the program would otherwise lose all records.
func TestRecordsReachFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	recorder, err := Create(path, Start{}, clocktesting.NewFakePassiveClock(epoch))
	if err != nil {
		t.Fatal(err)
	}
	defer recorder.Close()
	recorder.Append(Record{Phase: &Phase{Name: "chaos"}})
	for deadline := time.Now().Add(10 * time.Second); ; {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), `"chaos"`) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after 10 s the file has\n%s", content)
		}
	}
}

// TestFullDiskFailsRecorder requires that the recorder fails while the run goes on if the disk
// is full. Append must not block then.
func TestFullDiskFailsRecorder(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("no /dev/full here")
	}
	file, err := os.OpenFile(full, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := &Recorder{
		clock:  clocktesting.NewFakePassiveClock(epoch),
		queue:  make(chan queueItem, 1),
		done:   make(chan struct{}),
		failed: make(chan struct{}),
	}
	go r.write(file, nil)
	for range 100 {
		r.Append(Record{Gap: &Gap{Source: strings.Repeat("x", 1<<16)}})
	}
	<-r.Failed()
	if err := r.Flush(); err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("Flush: error %v, want no space left on device", err)
	}
	if err := r.Close(); err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("Close: error %v, want no space left on device", err)
	}
}

func TestReadRejectsOtherFiles(t *testing.T) {
	const start = `{"seq":1,"at":0,"start":{"format":1,"time":"2026-01-02T03:04:05Z"}}` + "\n"
	const second = `{"seq":2,"at":5,"phase":{"name":"chaos"}}` + "\n"
	const end = `{"seq":2,"at":5,"end":{}}` + "\n"
	for _, test := range []struct {
		name, in string
		whole    int
		wantErr  string
	}{
		{"empty", "", 0, "found no complete record; expected a start record"},
		{"whole", start + second, 2, ""},
		{"incomplete last line", start + second[:20], 1, "line 2 is incomplete: the end of the history is missing"},
		{"end without newline", start + strings.TrimSuffix(end, "\n"), 2, ""},
		{"end with an empty line", start + end + "\r\n", 2, ""},
		{"empty line", start + "\n" + second, 1, "line 2: found an empty line; expected a record"},
		{"only an empty line", "\n", 0, "found no complete record; expected a start record"},
		{"last line without newline", start + strings.TrimSuffix(second, "\n"), 1, "line 2 is incomplete: the end of the history is missing"},
		{"no end record", strings.Replace(start, `"format":1`, `"format":2,"ends":true`, 1) + second, 2, "record 2 is the last record; expected an end record: the end of the history is missing"},
		{"an end record", strings.Replace(start, `"format":1`, `"format":2,"ends":true`, 1) + `{"seq":2,"at":5,"end":{}}` + "\n", 2, ""},
		{"not JSON", start + "hello\n", 1, `line 2: the line is no valid record: found the text "hello"; expected a JSON object`},
		{"a key twice", start + strings.Replace(second, `"at":5`, `"at":5,"at":6`, 1), 1, `line 2: the line is no valid record: found the key "at" twice`},
		{"a field of an object twice", start + `{"seq":2,"at":1,"commit":{"type":"ADDED","object":{"resource":"pods","resource":"pods"}}}` + "\n", 1, `found the key "resource" twice`},
		{"a label twice", start + `{"seq":2,"at":1,"commit":{"type":"ADDED","object":{"resource":"pods","labels":{"a":"b","a":"c"}}}}` + "\n", 1, `found the key "a" twice`},
		{"not UTF-8", start + strings.Replace(second, "chaos", "\xff", 1), 1, "line 2: found bytes that are not UTF-8; expected a record as JSON in UTF-8"},
		{"an endless line", start + strings.Repeat("\x00", lineMax+1<<21), 1, "line 2: found more than 268435456 bytes; expected a record with fewer"},
		{"missing record", start + strings.Replace(second, `"seq":2`, `"seq":3`, 1), 1, "line 2: found a record with the sequence number (seq) 3; expected 2"},
		{"no number", start + strings.Replace(second, `"seq":2`, `"sec":2`, 1), 1, "line 2: found a record without the sequence number (seq); expected 2"},
		{"null", start + "null\n", 1, "line 2: found null; expected a record, which is a JSON object"},
		{"no kind", start + `{"seq":2,"at":1}` + "\n", 1, "line 2: found a record with no type; expected exactly one known type"},
		{"no start", strings.Replace(second, `"seq":2`, `"seq":1`, 1), 0, "line 1: the first record is no start record"},
		{"an unknown kind", start + `{"seq":2,"at":1,"weather":{}}` + "\n", 1, "line 2: found a record with the type \"weather\"; expected exactly one known type, such as commit or request"},
		{"two kinds", start + `{"seq":2,"at":1,"gap":{},"stall":{}}` + "\n", 1, "line 2: found a record with the types \"gap\" and \"stall\"; expected exactly one known type, such as commit or request"},
		{"two starts", start + strings.Replace(start, `"seq":1`, `"seq":2`, 1), 1, "line 2: found a second start record"},
		{"an unknown phase", start + `{"seq":2,"at":1,"phase":{"name":"nap"}}` + "\n", 1, `line 2: phase.name: found "nap"; expected one of chaos, settle, quiet, end`},
		{"another format", strings.Replace(start, `"format":1`, `"format":9`, 1), 0, "line 1: found history format 9; this version of gauntlet reads the formats 1 and 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history.jsonl")
			if err := os.WriteFile(path, []byte(test.in), 0o644); err != nil {
				t.Fatal(err)
			}
			records, err := readAll(path)
			if len(records) != test.whole {
				t.Errorf("%d records before the end, want %d", len(records), test.whole)
			}
			if test.wantErr == "" && err != nil || test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)) {
				t.Errorf("error %v, want %q", err, test.wantErr)
			}
		})
	}
}

// TestReadAhead requires that Read yields many lines and very long lines in order, up to the
// first invalid line. If the loop stops early, no goroutine may remain.
func TestReadAhead(t *testing.T) {
	const records, longAt, badAt = 5 * batchLines, batchLines + 7, 3*batchLines + 11
	line := func(i int) string {
		switch i {
		case 1:
			return `{"seq":1,"start":{"format":1}}`
		case longAt:
			return fmt.Sprintf(`{"seq":%d,"gap":{"detail":%q}}`, i, strings.Repeat("x", 3<<20))
		}
		return fmt.Sprintf(`{"seq":%d,"gap":{"detail":"%d"}}`, i, i)
	}
	var whole, broken strings.Builder
	for i := 1; i <= records; i++ {
		whole.WriteString(line(i) + "\n")
		if i == badAt {
			broken.WriteString("hello\n")
		} else {
			broken.WriteString(line(i) + "\n")
		}
	}
	for _, test := range []struct {
		name, in string
		stopAt   int
		want     int
		wantErr  string
	}{
		{"whole", whole.String(), 0, records, ""},
		{"incomplete last line", whole.String() + "{", 0, records, fmt.Sprintf("line %d is incomplete: the end of the history is missing", records+1)},
		{"invalid line", broken.String(), 0, badAt - 1, fmt.Sprintf("line %d: the line is no valid record", badAt)},
		{"stopped", whole.String(), 2*batchLines + 1, 2*batchLines + 1, ""},
		{"stopped before the invalid line", broken.String(), 1, 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			read, failure := 0, error(nil)
			for record, err := range Read(strings.NewReader(test.in)) {
				if err != nil {
					failure = err
					continue
				}
				read++
				if record.Seq != int64(read) || record.Gap != nil && read != longAt && record.Gap.Detail != fmt.Sprint(read) {
					t.Fatalf("position %d: found record %+v", read, record)
				}
				if read == test.stopAt {
					break
				}
			}
			if read != test.want {
				t.Errorf("%d records, want %d", read, test.want)
			}
			if (failure == nil) != (test.wantErr == "") || failure != nil && !strings.HasPrefix(failure.Error(), test.wantErr) {
				t.Errorf("error %v, want %q", failure, test.wantErr)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"seq":1,"start":{"format":1}}` + "\n" + `{"seq":2,"commit":{"type":"ADDED","object":{"resource":"pods"}}}` + "\n")
	f.Add(`{"seq":1`)
	f.Fuzz(func(t *testing.T, in string) {
		lines := strings.Count(in, "\n")
		records := 0
		for record, err := range Read(strings.NewReader(in)) {
			if (record == nil) == (err == nil) {
				t.Fatalf("record %v with error %v: want exactly one", record, err)
			}
			if record != nil {
				records++
			}
		}
		if records > lines {
			t.Fatalf("%d records out of %d whole lines", records, lines)
		}
	})
}

func TestProject(t *testing.T) {
	yes := true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "web-1", UID: "u1", ResourceVersion: "42", Generation: 3,
			CreationTimestamp: metav1.NewTime(epoch.In(time.FixedZone("elsewhere", 3600))),
			OwnerReferences:   []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "u0", Controller: &yes}},
			ManagedFields:     []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: corev1.PodSpec{
			NodeName:    "node-1",
			Tolerations: []corev1.Toleration{{Key: "k"}},
			Containers:  []corev1.Container{{Name: "c", Image: "i", Command: []string{"sleep"}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	got, err := Project("pods", pod)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(got.Body), `"nodeName":"node-1"`) || !strings.Contains(string(got.Body), `"phase":"Running"`) {
		t.Errorf("body %s: want node and phase", got.Body)
	}
	for _, dropped := range []string{"tolerations", "command", "managedFields", "metadata"} {
		if strings.Contains(string(got.Body), dropped) {
			t.Errorf("body %s: want no %s", got.Body, dropped)
		}
	}
	got.Body = nil
	want := Object{
		Ref:        Ref{Resource: "pods", Namespace: "n", Name: "web-1", UID: "u1", Version: 42},
		Generation: 3,
		Created:    epoch,
		Owners:     []Owner{{Kind: "ReplicaSet", Name: "web", UID: "u0", Controller: true, DoesNotBlock: true}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("projection (-want +got):\n%s", diff)
	}
	if got.ControllerRef() == nil || got.ControllerRef().UID != "u0" {
		t.Errorf("controllerRef %v, want u0", got.ControllerRef())
	}

	pod.ResourceVersion = "abc"
	if _, err := Project("pods", pod); err == nil || !strings.Contains(err.Error(), `pods n/web-1: resourceVersion "abc": expected a whole number`) {
		t.Errorf("a version that is not a number: error %v", err)
	}
}

func TestRefString(t *testing.T) {
	for want, ref := range map[string]Ref{
		"pods n/web-1": {Resource: "pods", Namespace: "n", Name: "web-1"},
		"nodes node-1": {Resource: "nodes", Name: "node-1"},
	} {
		if got := ref.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestRecordStalls advances the clock in steps and appends a record after each step. If the
// recorder detects stalls (times without CPU), it must add a Stall record for each long step.
func TestRecordStalls(t *testing.T) {
	tests := []struct {
		name  string
		steps []time.Duration
		want  []time.Duration // durations of the recorded stalls
	}{
		{"no stall", []time.Duration{heartbeatInterval, 2 * heartbeatInterval, stallMin}, nil},
		{"a stall", []time.Duration{time.Second}, []time.Duration{time.Second - heartbeatInterval}},
		{"the shortest stall", []time.Duration{stallMin + heartbeatInterval}, []time.Duration{stallMin}},
		{"two stalls", []time.Duration{time.Second, heartbeatInterval, 2 * time.Second}, []time.Duration{time.Second - heartbeatInterval, 2*time.Second - heartbeatInterval}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history.jsonl")
			clock := clocktesting.NewFakeClock(epoch)
			recorder, err := Create(path, Start{}, clock)
			if err != nil {
				t.Fatal(err)
			}
			stop := recorder.RecordStalls(clock)
			for _, step := range test.steps {
				clock.Step(step)
				recorder.Append(Record{Phase: &Phase{Name: PhaseChaos}})
			}
			stop()
			clock.Step(time.Hour) // not a stall, because stop was called
			recorder.Append(Record{Phase: &Phase{Name: PhaseSettle}})
			if err := recorder.Close(); err != nil {
				t.Fatal(err)
			}
			records, err := readAll(path)
			if err != nil {
				t.Fatal(err)
			}
			var got []time.Duration
			for i, record := range records {
				if record.Stall == nil {
					continue
				}
				got = append(got, record.Stall.Duration)
				if i+1 == len(records) || records[i+1].At != record.At {
					t.Errorf("record %d: the stall and the next record have different times", i)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("stalls (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadFormat1 reads a history of format 1, whose commit records have the key "truth". Both
// decoders must accept this key: decodeFast, and Unmarshal, which decodes lines with escape
// sequences.
func TestReadFormat1(t *testing.T) {
	for _, name := range []string{"web-1", `web\u002d1`} {
		lines := `{"seq":1,"at":0,"start":{"format":1,"time":"2026-01-02T03:04:05Z"}}` + "\n" +
			`{"seq":2,"at":5,"truth":{"type":"ADDED","object":{"resource":"pods","name":"` + name + `","version":7}}}` + "\n"
		var commits []Commit
		for record, err := range Read(strings.NewReader(lines)) {
			if err != nil {
				t.Fatal(err)
			}
			if record.Commit != nil {
				commits = append(commits, *record.Commit)
			}
		}
		want := []Commit{{Type: Added, Object: Object{Ref: Ref{Resource: "pods", Name: "web-1", Version: 7}}}}
		if diff := cmp.Diff(want, commits); diff != "" {
			t.Errorf("name %s: commits (-want +got):\n%s", name, diff)
		}
	}
}
