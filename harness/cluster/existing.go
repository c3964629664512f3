package cluster

import "errors"

// Existing says which existing cluster a run uses. It also says how gauntlet turns off that
// cluster's own controllers, which would interfere with the controllers under test.
type Existing struct {
	// Kubeconfig is the path of a kubeconfig whose user has all permissions. Empty means the file
	// that kubectl would use: KUBECONFIG, or ~/.kube/config.
	Kubeconfig string
	// Context is the name of a context in the kubeconfig. Empty means the current context.
	Context string
	// ControllerSwitch is the path or name of a program that turns the cluster's own controllers
	// off and on. gauntlet calls it with the argument "off" before a run, and "on" after the run.
	//
	// gauntlet sets environment variables for the program. KUBECONFIG contains the value of the
	// field Kubeconfig, and CONTEXT the value of the field Context. If the field Kubeconfig is
	// empty, the program gets the KUBECONFIG of gauntlet. CONTROLLERS lists the controllers under
	// test, separated by commas.
	//
	// Without a ControllerSwitch, a run fails at its start if the cluster already runs a controller
	// under test.
	ControllerSwitch string
	// CleanupCommand removes the test run's objects from the cluster if gauntlet is killed. A
	// second process, the guard, then runs this command. The first element is the absolute path of
	// the program. If CleanupCommand is empty, environment.Start fills in a default command.
	CleanupCommand []string
}

// ErrNoCapacity means that an existing cluster has too little free capacity for a run's pods. The
// Start function of package existing returns an error that wraps ErrNoCapacity.
var ErrNoCapacity = errors.New("the nodes do not have enough capacity for the pods of the run")
