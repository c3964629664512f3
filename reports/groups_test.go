package reports

import (
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// TestGroups checks that the same failure has the same ID in different campaigns. Other failures must
// have another ID.
func TestGroups(t *testing.T) {
	violation := func(seed uint64, reason string) Run {
		return Run{
			Scenario: "generated", Subject: "ours", Seed: seed, Verdict: check.Fail, Reproduce: "gauntlet run --seed=1",
			Results: []check.Result{{Check: "max-surge", Verdict: check.Fail, Reason: reason}},
		}
	}
	first := Groups([]Run{violation(1, "found 5 pods of ns/web-x7k2p; expected 4"), violation(2, "found 9 pods of ns/api-abcde; expected 8")})
	second := Groups([]Run{violation(3, "another reason"), violation(4, "found 6 pods of ns/db-zzzzz; expected 5")})
	if len(first) != 1 || len(second) != 2 {
		t.Fatalf("%d and %d groups; want 1 and 2", len(first), len(second))
	}
	if first[0].ID != second[1].ID || second[0].ID == second[1].ID || len(first[0].ID) != 2*idBytes {
		t.Errorf("IDs %s; %s, %s; want the same ID for the same failure only", first[0].ID, second[0].ID, second[1].ID)
	}
	group := first[0]
	if group.Title != "fail: max-surge (ours)" || group.Runs != 2 || group.Seed != 1 || !strings.Contains(group.Text, "`gauntlet run --seed=1`") {
		t.Errorf("group %+v; want the title, 2 runs, and the command of the smallest run", group)
	}
	if none := Groups(nil); none != nil {
		t.Errorf("groups %v without failures; want none", none)
	}
}
