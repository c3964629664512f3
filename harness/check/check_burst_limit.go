package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// burstLimitCheck is the row of burst-limit in All.
var burstLimitCheck = Check{
	ID:               "burst-limit",
	Guarantee:        "For one owner, at most 500 creates and 500 deletes are ever outstanding: sent, and neither refused nor observed.",
	Contract:         "ReplicaSet 8, 9",
	Property:         Safety,
	AllowedBehaviors: []int{12, 13, 17},
	New:              newBurstLimit,
}

// burstLimitJudge: outstanding creates, and deletes, stay within the limit.
type burstLimitJudge struct{ findings }

func newBurstLimit(Settings) Checker { return &burstLimitJudge{} }

func (j *burstLimitJudge) Observe(m *Model, _ *history.Record) {
	c := m.sent
	if c == nil || c.ledger == nil {
		return
	}
	l := c.ledger
	var account *account
	var doing string
	allowed, wanted := burstLimit, 0
	switch c.verb {
	case callCreate:
		account, doing = &l.creates, "created"
		wanted = l.ceiling.recent.bounds(m.at).high - l.tally.replicas
		allowed += l.credit // what it took for its own, it waits for no more
	case callDelete:
		account, doing = &l.deletes, "deleted"
		wanted = l.tally.claimable() - l.floor.recent.bounds(m.at).low
	default:
		return
	}
	if wanted > burstLimit {
		j.tested++
	}
	if n := account.outstanding(); n > allowed {
		j.violate(func() Evidence {
			return Evidence{
				Summary:  fmt.Sprintf("%s: %d pods being %s by %s, and not observed", l.name(), n, doing, l.process.name),
				Expected: fmt.Sprintf("at most %d at a time", burstLimit),
				Object:   l.ref(),
				At:       m.now,
				Records:  append(account.records(), m.seq),
			}
		})
	}
}
