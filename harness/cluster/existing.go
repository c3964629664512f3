package cluster

import "errors"

// Existing says which existing cluster a run uses, and how gauntlet turns off its controllers.
type Existing struct {
	// Kubeconfig is the path of a kubeconfig whose user has all permissions. Empty means the file
	// that kubectl would use: KUBECONFIG, or ~/.kube/config.
	Kubeconfig string
	// Context is the name of a context in the kubeconfig. Empty means the current context.
	Context string
	// ControllerSwitch is the path or name of a program that turns the cluster's own controllers
	// off and on. gauntlet calls it with the argument "off" before a run, and "on" after the run.
	//
	// gauntlet sets environment variables for the program. KUBECONFIG is the path of the
	// kubeconfig, if Kubeconfig is set. CONTEXT is the name of the context; empty means the current
	// context. CONTROLLERS lists the controllers under test, separated by commas.
	//
	// If ControllerSwitch is empty, a run fails if a controller under test is active on the
	// cluster.
	ControllerSwitch string
	// CleanupCommand is a command that removes the objects of a killed run from the cluster. The
	// guard process runs it if gauntlet dies during a run. The first element is an absolute path.
	// If CleanupCommand is empty, environment.Start sets it to a command of its own.
	CleanupCommand []string
}

// ErrNoCapacity means that the nodes of an existing cluster have too little free capacity for the
// pods of a run. The function Start of the provider existing then returns an error that wraps
// ErrNoCapacity.
var ErrNoCapacity = errors.New("the nodes do not have enough capacity for the pods of the run")
