package scenario

import "testing"

func TestPodsMax(t *testing.T) {
	for _, test := range []struct {
		name, workload string
		want           int
	}{
		{"a ReplicaSet", `[{create: {kind: ReplicaSet, name: web, replicas: 20}}]`, 20},
		{"a Deployment surges", `[{create: {kind: Deployment, name: web, replicas: 9}}]`, 12},
		{"pods by themselves", `[{create: {kind: Pod, name: orphan, count: 3}}, {create: {kind: Service, name: web}}]`, 3},
		{"scaled up and down", `[{create: {kind: ReplicaSet, name: web, replicas: 2}},
  {scale: {kind: ReplicaSet, name: web, replicas: 9}}, {scale: {kind: ReplicaSet, name: web, replicas: 1}}]`, 9},
		{"rolled out and scaled", `[{create: {kind: Deployment, name: web, replicas: 4}},
  {rollout: {name: web, version: v2, replicas: 8}}]`, 10},
		{"one after another", `[{create: {kind: ReplicaSet, name: a, replicas: 5}}, {delete: {kind: ReplicaSet, name: a}},
  {create: {kind: ReplicaSet, name: b, replicas: 6}}]`, 6},
		{"another selection leaves the pods", `[{create: {kind: ReplicationController, name: a, replicas: 5}},
  {select: {kind: ReplicationController, name: a, selector: {app: b}}}]`, 10},
		{"a manifest with replicas", `[{create: {kind: StatefulSet, name: a, manifest: {spec: {replicas: 5}}}}]`, 5},
		{"a manifest without replicas", `[{create: {kind: Job, name: a, manifest: {spec: {parallelism: 5}}}}]`, 0},
		{"a generic object, scaled", `[{create: {kind: StatefulSet, name: a, manifest: {}}}, {scale: {kind: StatefulSet, name: a, replicas: 4}}]`, 4},
		{"a patch of the replicas", `[{create: {kind: ReplicaSet, name: a, replicas: 1}}, {patch: {kind: ReplicaSet, name: a, merge: {spec: {replicas: 7}}}},
  {patch: {kind: ReplicaSet, name: a, merge: {spec: {minReadySeconds: 1}}}}]`, 7},
	} {
		s, err := Parse("x.yaml", []byte("name: x\ndescription: y\nworkload: "+test.workload+"\n"))
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if got := s.PodsMax(); got != test.want {
			t.Errorf("%s: %d pods, want %d", test.name, got, test.want)
		}
	}
}
