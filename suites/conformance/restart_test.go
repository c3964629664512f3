package conformance

import (
	"fmt"

	"github.com/onsi/ginkgo/v2"

	"github.com/kube-gauntlet/gauntlet/suites/conformance/world"
)

// What a start must not do.
var _ = ginkgo.Describe("restart", func() {
	spec("Restart/Controller Manager should not create/delete replicas across restart", "a controller that is started again makes and deletes no pods: all that there are are seen first",
		func(ctx ginkgo.SpecContext, n *world.Namespace) {
			rc := n.Create(ctx, world.SetSpec{Kind: world.ReplicationControllerKind, Name: "legacy", Replicas: 10}.Build())
			rs := n.Create(ctx, world.SetSpec{Kind: world.ReplicaSetKind, Name: "web", Replicas: 10}.Build())
			d := n.Create(ctx, world.NewDeployment("front", 5))
			n.Eventually(ctx, world.ASet(rc), readyWith(10))
			n.Eventually(ctx, world.ASet(rs), readyWith(10))
			n.Eventually(ctx, world.ADeployment(d), complete())
			n.Heal(ctx)
			pods := n.Eventually(ctx, world.AllPods(), thatMany(25)).(world.Pods)
			want := fmt.Sprint(pods.Names())
			n.Always("the pods are those that there were", func(v *world.View) error {
				if got := fmt.Sprint(v.Pods().Names()); got != want {
					return fmt.Errorf("the pods:\n%s", v.Pods())
				}
				return nil
			})
			n.Restart(ctx)
			n.Barrier(ctx)
			n.InTheEnd(ctx, world.AllPods(), thatMany(25))
		})
})
