package deployment

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

type annotations = map[string]string

func TestWithRevision(t *testing.T) {
	long := strings.TrimSuffix(strings.Repeat("1000,", 400), ",") // 1999 characters
	tests := []struct {
		name     string
		before   annotations
		revision int64
		want     annotations
	}{
		{"first revision", nil, 1, annotations{revisionAnnotation: "1"}},
		{"same revision", annotations{revisionAnnotation: "2"}, 2, annotations{revisionAnnotation: "2"}},
		{"lower revision is ignored", annotations{revisionAnnotation: "7"}, 3, annotations{revisionAnnotation: "7"}},
		{"reused ReplicaSet gets a new revision", annotations{revisionAnnotation: "1"}, 3, annotations{revisionAnnotation: "3", historyAnnotation: "1"}},
		{"reused once more", annotations{revisionAnnotation: "3", historyAnnotation: "1"}, 5, annotations{revisionAnnotation: "5", historyAnnotation: "1,3"}},
		{"malformed revision is replaced and not recorded", annotations{revisionAnnotation: "x"}, 3, annotations{revisionAnnotation: "3"}},
		{"revisions are compared as numbers", annotations{revisionAnnotation: "9"}, 10, annotations{revisionAnnotation: "10", historyAnnotation: "9"}},
		{"other annotations stay", annotations{"a": "b"}, 1, annotations{"a": "b", revisionAnnotation: "1"}},
		{"full history drops its oldest revision", annotations{revisionAnnotation: "1001", historyAnnotation: long}, 1002,
			annotations{revisionAnnotation: "1002", historyAnnotation: long[len("1000,"):] + ",1001"}},
		{"history above the limit", annotations{revisionAnnotation: "7", historyAnnotation: strings.Repeat("x", 5000)}, 8,
			annotations{revisionAnnotation: "8", historyAnnotation: "7"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, withRevision(test.before, test.revision)); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHistoryIsLimitedTo2000Characters checks a revision history that would exceed the limit. It
// must lose only its oldest revisions.
func TestHistoryIsLimitedTo2000Characters(t *testing.T) {
	full := "1," + strings.Repeat("123456789,", 199) + "1234567" // 1999 characters
	if got := appendRevision(full[1:], "8"); len(got) != 2000 || !strings.HasPrefix(got, ",123") {
		t.Errorf("history has %d characters, want 2000", len(got))
	}
	if got := appendRevision(full, "8"); !strings.HasPrefix(got, "123") {
		t.Errorf("history has %d characters, want the oldest revision dropped", len(got))
	}
}

func TestAppendRevision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		revisions := rapid.SliceOfN(rapid.Int64Range(1, 1e12), 1, 400).Draw(t, "revisions")
		history := ""
		var all []string
		for _, revision := range revisions {
			text := strconv.FormatInt(revision, 10)
			history = appendRevision(history, text)
			all = append(all, text)
		}
		kept := strings.Split(history, ",")
		if !slices.Equal(kept, all[len(all)-len(kept):]) {
			t.Fatalf("history %q of %v", history, all)
		}
		if len(history) > maxHistoryLength {
			t.Fatalf("%d characters", len(history))
		}
		if lost := len(all) - len(kept); lost > 0 && len(history)+1+len(all[lost-1]) <= maxHistoryLength {
			t.Fatalf("revision %s was dropped, although it fits into %d characters", all[lost-1], len(history))
		}
	})
}

func FuzzAppendRevision(f *testing.F) {
	f.Add("", "1")
	f.Add(strings.Repeat(",", 3000), "18446744073709551615")
	f.Fuzz(func(t *testing.T, history, revision string) {
		if len(revision) > 20 || revision == "" || strings.Contains(revision, ",") {
			t.Skip("no revision")
		}
		got := appendRevision(history, revision)
		if len(got) > maxHistoryLength || !strings.HasSuffix(","+got, ","+revision) {
			t.Errorf("appendRevision = %q", got)
		}
	})
}

func TestParseReplicas(t *testing.T) {
	for text, want := range map[string]int{
		"0": 0, "7": 7, "2147483647": 2147483647, // and values that are not valid numbers of replicas:
		"": none, "-1": none, "x": none, "1.5": none, "2147483648": none, "99999999999": none, " 1": none,
	} {
		got, ok := parseReplicas(text)
		if !ok {
			got = none
		}
		if got != want {
			t.Errorf("parseReplicas(%q) = %d, want %d", text, got, want)
		}
	}
}

func FuzzParseReplicas(f *testing.F) {
	f.Add("12")
	f.Add("+0")
	f.Fuzz(func(t *testing.T, text string) {
		if n, ok := parseReplicas(text); ok && (n < 0 || strings.TrimLeft(text, "0") != strings.TrimLeft(strconv.Itoa(n), "0")) {
			t.Errorf("parseReplicas(%q) = %d", text, n)
		}
	})
}

// FuzzRevision checks that revisionOf parses the value of a revision annotation exactly or
// rejects it.
func FuzzRevision(f *testing.F) {
	for _, text := range []string{"", "0", "7", "-7", "007", "+7", "x", "9223372036854775808"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		revision, ok := revisionOf(annotations{revisionAnnotation: text})
		want, valid := new(big.Int).SetString(text, 10)
		valid = valid && want.IsInt64() && !strings.Contains(text, "_")
		if ok != valid || ok && revision != want.Int64() {
			t.Errorf("%q is revision %d: %t, want %v: %t", text, revision, ok, want, valid)
		}
	})
}

func TestWithInheritedAnnotations(t *testing.T) {
	deployment := annotations{
		"team": "blue", "note": "new",
		corev1.LastAppliedConfigAnnotation: "{}", revisionAnnotation: "9", historyAnnotation: "8",
		desiredReplicasAnnotation: "9", maxReplicasAnnotation: "9", appsv1.DeprecatedRollbackTo: "1",
	}
	before := annotations{"note": "old", "deleted": "kept", revisionAnnotation: "2", desiredReplicasAnnotation: "3"}
	want := annotations{"team": "blue", "note": "new", "deleted": "kept", revisionAnnotation: "2", desiredReplicasAnnotation: "3"}
	if diff := cmp.Diff(want, withInheritedAnnotations(before, deployment)); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if before["note"] != "old" {
		t.Error("withRevision modified its argument")
	}
}

func TestAnnotationsAfterRollback(t *testing.T) {
	deployment := annotations{"cause": "edit", corev1.LastAppliedConfigAnnotation: "{}", revisionAnnotation: "2", appsv1.DeprecatedRollbackTo: "1"}
	set := annotations{"cause": "create", revisionAnnotation: "1", historyAnnotation: "0", desiredReplicasAnnotation: "3", maxReplicasAnnotation: "4"}
	want := annotations{"cause": "create", corev1.LastAppliedConfigAnnotation: "{}", revisionAnnotation: "2"}
	if diff := cmp.Diff(want, annotationsAfterRollback(deployment, set)); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestWithEntriesReturnsUnchangedMap(t *testing.T) {
	before := annotations{"a": "1"}
	if same := withEntries(before, annotations{"a": "1"}); len(same) != 1 {
		t.Errorf("annotations %v", same)
	}
	if changed := withEntries(before, annotations{"a": "", "b": ""}); before["a"] != "1" || len(before) != 1 || len(changed) != 2 {
		t.Errorf("before %v, changed %v", before, changed)
	}
	if got := withEntries(nil, annotations{"a": ""}); len(got) != 1 {
		t.Errorf("the entry with an empty value was not added: %v", got)
	}
}
