package users

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/faults/internal/faulttest"
)

func TestEditParams(t *testing.T) {
	faulttest.Params(t, Edit, []faulttest.Case{
		{Text: "steps: [{scale: {kind: ReplicaSet, name: web, replicas: 3}}, {pause: {name: app}, after: 1s, await: {until: available}}]"},
		{Text: "{}", Want: "s.yaml:1:1: user-edit.steps: found no step; expected at least one"},
		{
			Text: "steps: [{scale: {kind: ReplicaSet, name: web}}]",
			Want: "s.yaml:1:17: user-edit.steps[0].scale.replicas: found nothing; expected a number from 0 to 20000",
		},
		{
			Text: "steps: [{after: 1s}]",
			Want: "s.yaml:1:9: user-edit.steps[0]: found only the field after; expected it beside an operation or an await, which then begins after this time",
		},
		{
			Text: "steps: [{pause: {name: app}, after: 25h}]",
			Want: "s.yaml:1:37: user-edit.steps[0].after: found 25h0m0s; expected a duration from 0s to 24h0m0s",
		},
		{
			Text: "steps: [{pause: {kind: Service, name: app}}]",
			Want: `s.yaml:1:24: user-edit.steps[0].pause.kind: found "Service"; expected Deployment`,
		},
	})
}
