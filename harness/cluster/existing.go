package cluster

import "errors"

// Existing selects an existing cluster, and says how gauntlet turns off its controllers.
type Existing struct {
	// Kubeconfig is the path of a kubeconfig whose user has all permissions. If it is
	// empty, the defaults of kubectl apply.
	Kubeconfig string
	// Context is a context of the kubeconfig. If it is empty, the current context is
	// used.
	Context string
	// ControllerSwitch is a program that turns the cluster's own controllers off and on. It
	// is called with the argument "off" or "on". Its environment contains KUBECONFIG,
	// CONTEXT, which is empty for the current context, and CONTROLLERS, the names of the
	// controllers under test, separated by commas. It is optional.
	ControllerSwitch string
	// CleanupCommand is a command that removes what a killed run left on the cluster. Its
	// first element is an absolute path. If it is empty, the user has to clean up.
	CleanupCommand []string
}

// ErrNoCapacity means that the nodes of an existing cluster have too little free capacity
// for the pods of the run.
var ErrNoCapacity = errors.New("the nodes do not have enough capacity for the pods of the run")
