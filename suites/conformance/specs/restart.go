package specs

import (
	"fmt"

	"github.com/onsi/ginkgo/v2"

	"github.com/kube-gauntlet/gauntlet/suites/conformance/testenv"
)

// This Ginkgo spec tests the restart of the program under test.
var _ = ginkgo.Describe("restart", func() {
	spec("Restart/Controller Manager should not create/delete replicas across restart", "a restarted controller creates and deletes no pods, because it waits for its caches to sync",
		func(ctx ginkgo.SpecContext, n *testenv.Namespace) {
			rc := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: testenv.ReplicationControllerKind, Name: "legacy", Replicas: 10}.Build())
			rs := n.Create(ctx, testenv.ReplicaOwnerSpec{Kind: testenv.ReplicaSetKind, Name: "web", Replicas: 10}.Build())
			d := n.Create(ctx, testenv.NewDeployment("front", 5))
			n.Eventually(ctx, testenv.GetReplicaOwner(rc), allReady(10))
			n.Eventually(ctx, testenv.GetReplicaOwner(rs), allReady(10))
			n.Eventually(ctx, testenv.GetDeployment(d), isComplete())
			n.Heal(ctx)
			pods := n.Eventually(ctx, testenv.GetPods(), podCount(25)).(testenv.Pods)
			want := fmt.Sprint(pods.Names())
			n.Always("the pods are the same as before the restart", func(v *testenv.View) error {
				if got := fmt.Sprint(v.Pods().Names()); got != want {
					return fmt.Errorf("the pods:\n%s", v.Pods())
				}
				return nil
			})
			n.Restart(ctx)
			n.Barrier(ctx)
			n.EventuallyWithoutFaults(ctx, testenv.GetPods(), podCount(25))
		})
})
