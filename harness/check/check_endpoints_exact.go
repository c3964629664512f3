package check

import "github.com/kube-gauntlet/gauntlet/harness/kube"

// endpointsExactCheck demands that the Endpoints of each Service with a selector list exactly the
// addresses of its pods. It examines the Endpoints after the faults are healed.
//
// The verdict is unknown if the run ends before the scenario's time limit while some Endpoints have
// not converged. The check skips Services of type ExternalName.
var endpointsExactCheck = Check{
	ID:               "endpoints-exact",
	Guarantee:        "Within the scenario's bound after the faults are healed, the Endpoints of each Service with a selector list exactly the addresses and ports of its pods, ready and not ready.",
	Contract:         "Endpoints 2 to 10",
	Property:         Liveness,
	Scope:            contractOf(kube.PublishesAddresses),
	ExercisedWhen:    "A Service that has a selector and is not of type ExternalName exists at the end of the run.",
	AllowedBehaviors: []string{"truncated-endpoints", "publish-not-ready-addresses", "trigger-time-annotation"},
	New:              newEndpointsExactChecker,
}

// newEndpointsExactChecker returns a checker that reports Services whose Endpoints do not become
// correct in time. It examines Services with a selector, except those of type ExternalName.
func newEndpointsExactChecker(s Settings) Checker {
	return newConvergenceChecker(s, convergingServices())
}
