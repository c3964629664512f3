package scenario

import "testing"

// TestAwaitTimes checks which awaits are refused because their condition needs more time. An empty error means that the condition may
// be met.
func TestAwaitTimes(t *testing.T) {
	const slow = "cluster: {podStartDelay: 20s}\nworkload:\n"
	const available = slow + "  - create: {kind: Deployment, name: web, replicas: 2, minReadySeconds: 31}\n"
	for _, test := range []struct{ name, text, want string }{
		{"ready", slow + "  - create: {kind: ReplicaSet, name: web, replicas: 2}\n    await: {until: ready, within: 19s}\n",
			"workload[0].await.within: found 19s, but ready takes longer, because cluster.podStartDelay is 20s; expected at least 20s"},
		{"enough time", slow + "  - create: {kind: ReplicaSet, name: web, replicas: 2}\n    await: {until: ready, within: 20s}\n", ""},
		{"no replicas", slow + "  - create: {kind: ReplicaSet, name: web, replicas: 0}\n    await: {until: ready, within: 2s}\n", ""},
		{"scaled", slow + "  - create: {kind: ReplicaSet, name: web, replicas: 2}\n    await: {until: scaled, within: 2s}\n", ""},
		{"a pod", slow + "  - create: {kind: Pod, name: web}\n    await: {until: condition=Ready, within: 2s}\n",
			"workload[0].await.within: found 2s, but condition=Ready takes longer, because cluster.podStartDelay is 20s; expected at least 20s"},
		{"complete", available + "    await: {until: complete, within: 40s}\n",
			"workload[0].await.within: found 40s, but complete takes longer, because cluster.podStartDelay is 20s and minReadySeconds is 31; expected at least 50s"},
		{"the default", "workload:\n  - create: {kind: ReplicaSet, name: web, replicas: 2, minReadySeconds: 90}\n    await: {until: available}\n",
			"workload[0].await.within: found nothing, which means 1m0s, but available takes longer, because minReadySeconds is 90; expected at least 1m29s"},
		{"a rollout", available + "  - rollout: {name: web, version: v2}\n    await: {until: complete, within: 10s}\n",
			"workload[1].await.within: found 10s, but complete takes longer, because cluster.podStartDelay is 20s and minReadySeconds is 31; expected at least 50s"},
		{"old pods during a rollout", available + "  - rollout: {name: web, version: v2}\n    await: {until: available, within: 10s}\n", ""},
		{"a rollout after a change", available + "  - configure: {kind: Deployment, name: web, minReadySeconds: 0}\n  - rollout: {name: web, version: v2}\n    await: {until: complete, within: 10s}\n", ""},
		{"an await in a later step", available + "  - await: {kind: Deployment, name: web, until: complete, within: 40s}\n", ""},
		{"pods to adopt", slow + "  - create: {kind: Pod, name: web, count: 2}\n  - create: {kind: ReplicaSet, name: web, replicas: 2}\n    await: {until: ready, within: 2s}\n", ""},
		{"ReplicaSets to adopt", slow + "  - create: {kind: ReplicaSet, name: web, replicas: 2}\n  - create: {kind: Deployment, name: web, replicas: 2}\n    await: {until: ready, within: 2s}\n", ""},
		{"another clock", available + "    await: {until: complete, within: 40s}\nfaults:\n  - clock-skew: {ahead: 1m}\n", ""},
		{"an operator", available + "    await: {until: complete, within: 40s}\noperator: {}\n", ""},
		{"quiet", slow + "  - create: {kind: ReplicaSet, name: web, replicas: 2}\n    await: {until: quiet, within: 2s}\nsettle: {quiet: 5s}\n",
			"workload[0].await.within: found 2s, but quiet takes longer, because settle.quiet is 5s; expected at least 5s"},
	} {
		t.Run(test.name, func(t *testing.T) { checkReachable(t, test.text, test.want) })
	}
}
