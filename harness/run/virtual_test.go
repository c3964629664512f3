package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestPanicOf checks that only a panic of a replica counts as the death of this replica.
func TestPanicOf(t *testing.T) {
	const (
		again   = "E0101 message\npanic: index out of range [recovered, repanicked]\n\n"
		replica = `goroutine 7 [running, synctest bubble 1 labels:{"replica": "subject-1"}]:` + "\nmain.f()\n"
		other   = "goroutine 8 [running, synctest bubble 1]:\nmain.g()\n"
	)
	died := &history.Process{Name: "subject-1", Event: history.ProcessDied, Detail: "panic: index out of range [recovered, repanicked]"}
	for name, test := range map[string]struct {
		log  string
		want *history.Process
	}{
		"a replica":                            {again + replica + "\n" + other, died},
		"a replica, with more text":            {"panic: nil map\n" + again + "[signal SIGSEGV: segmentation violation]\n\n" + replica, died},
		"the control plane, beside a replica":  {again + other + "\n" + replica, nil},
		"the control plane after a replica's":  {again + replica + "\n" + again + other, nil},
		"a deadlock":                           {"fatal error: all goroutines are asleep - deadlock!\n\n" + replica, nil},
		"an end of the log before the stacks":  {again, nil},
		"no panic":                             {"E0101 message\n", nil},
		"a message that quotes another panic:": {"E0101 panic: x\n\n" + replica, nil},
	} {
		if diff := cmp.Diff(test.want, panicOf(test.log)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
