package kube

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// Controller describes a controller that can be under test. It is a row of the table
// [Controllers].
type Controller struct {
	// Name is the name of the controller, such as deployment-controller. The flag --controllers
	// of kube-controller-manager accepts this name.
	Name string
	// Kind is the kind of the objects that the controller reconciles. The work queue of the
	// controller has one key for each of these objects.
	Kind string
	// Watches lists the kinds that the controller has in its informer caches.
	Watches []string
	// Writes lists the kinds that the controller creates, changes or deletes.
	Writes []string
	// ConcurrencyFlag is the flag of kube-controller-manager that sets the controller's number
	// of workers, such as --concurrent-deployment-syncs.
	ConcurrencyFlag string
	// ClusterRole is the cluster role that kube-controller-manager uses for this controller. It
	// has the permissions that the controller needs.
	ClusterRole string
	// Traits lists properties of the controller on which checks depend. For example, a check
	// applies only to controllers with the trait Expectations. Such a controller waits until its
	// cache shows its earlier creates and deletes.
	Traits []Trait
	// Contract is true if controllers/CONTRACT.md specifies the controller's behavior. This
	// repository then also contains an implementation of the controller.
	Contract bool
}

// Trait is a property of a controller, such as "creates pods in growing batches". Some checks
// apply only to controllers with a certain trait.
type Trait string

// The traits of controllers. The table [Traits] explains each of them.
const (
	OwnsPods           Trait = "owns-pods"
	SlowStart          Trait = "slow-start"
	Expectations       Trait = "expectations"
	BurstLimit         Trait = "burst-limit"
	RanksVictims       Trait = "ranks-victims"
	ReadsOwnWrites     Trait = "reads-own-writes"
	RollsOut           Trait = "rolls-out"
	PublishesAddresses Trait = "publishes-addresses"
	ActsByTime         Trait = "acts-by-time"
)

// TraitMeaning is a row of the table [Traits]: a trait and its explanation for users, in
// sentences.
type TraitMeaning struct {
	Trait   Trait
	Meaning string
}

// Traits is the table of all traits, such as Expectations, with their explanations for users.
var Traits = []TraitMeaning{
	{OwnsPods, "The controller creates and deletes pods until their number is spec.replicas."},
	{SlowStart, "The controller creates pods in batches of 1, 2, 4 and so on. It starts a batch after all creates of the previous one have succeeded."},
	{Expectations, "The controller creates and deletes pods only after its cache shows all its earlier creates and deletes."},
	{BurstLimit, "The controller creates or deletes at most 500 pods in one sync."},
	{RanksVictims, "The controller sorts its pods to decide which of them it deletes first."},
	{ReadsOwnWrites, "A sync waits until the caches contain what the controller last wrote for the object."},
	{RollsOut, "The controller replaces pods of an old version by pods of a new one."},
	{PublishesAddresses, "The controller writes the addresses of the pods of a Service."},
	{ActsByTime, "The controller also writes because time has passed. For example, the CronJob controller creates Jobs by a schedule."},
}

// Has reports whether the controller has a trait.
func (c *Controller) Has(t Trait) bool { return slices.Contains(c.Traits, t) }

// Controllers is the table of the controllers that can be under test. If a scenario names no
// controllers, the rows with Contract set are under test.
var Controllers = []Controller{
	{
		Name:            "replicationcontroller-controller",
		Kind:            ReplicationController,
		Watches:         []string{ReplicationController, Pod},
		Writes:          []string{ReplicationController, Pod},
		ConcurrencyFlag: "--concurrent-rc-syncs",
		ClusterRole:     "system:controller:replication-controller",
		Traits:          []Trait{OwnsPods, SlowStart, Expectations, BurstLimit, RanksVictims},
		Contract:        true,
	},
	{
		Name:            "replicaset-controller",
		Kind:            ReplicaSet,
		Watches:         []string{ReplicaSet, Pod},
		Writes:          []string{ReplicaSet, Pod},
		ConcurrencyFlag: "--concurrent-replicaset-syncs",
		ClusterRole:     "system:controller:replicaset-controller",
		Traits:          []Trait{OwnsPods, SlowStart, Expectations, BurstLimit, RanksVictims, ReadsOwnWrites},
		Contract:        true,
	},
	{
		Name:            "deployment-controller",
		Kind:            Deployment,
		Watches:         []string{Deployment, ReplicaSet, Pod},
		Writes:          []string{Deployment, ReplicaSet},
		ConcurrencyFlag: "--concurrent-deployment-syncs",
		ClusterRole:     "system:controller:deployment-controller",
		Traits:          []Trait{RollsOut},
		Contract:        true,
	},
	{
		Name:            "endpoints-controller",
		Kind:            Service,
		Watches:         []string{Service, Endpoints, Pod},
		Writes:          []string{Endpoints},
		ConcurrencyFlag: "--concurrent-endpoint-syncs",
		ClusterRole:     "system:controller:endpoint-controller",
		Traits:          []Trait{PublishesAddresses},
		Contract:        true,
	},
	{
		Name:            "cronjob-controller",
		Kind:            "CronJob",
		Watches:         []string{"CronJob", "Job"},
		Writes:          []string{"CronJob", "Job"},
		ConcurrencyFlag: "--concurrent-cron-job-syncs",
		ClusterRole:     "system:controller:cronjob-controller",
		Traits:          []Trait{ActsByTime},
	},
}

// LeaseName is the name of the leader-election lease of kube-controller-manager. All
// controllers in the table use this lease.
const LeaseName = "kube-controller-manager"

// DefaultControllers returns the names of the controllers that are under test if a scenario
// names no controllers. These are the controllers with Contract set.
func DefaultControllers() []string {
	var names []string
	for _, c := range Controllers {
		if c.Contract {
			names = append(names, c.Name)
		}
	}
	return names
}

// ControllersNamed returns the controllers with the given names, in the order of the table
// [Controllers]. Without names, it returns the default controllers. If the table does not
// contain a name, the error lists all valid names.
func ControllersNamed(names ...string) ([]Controller, error) {
	if len(names) == 0 {
		names = DefaultControllers()
	}
	for _, name := range names {
		if !slices.Contains(ControllerNames(), name) {
			return nil, fmt.Errorf("unknown controller %q; expected one of %s%s", name, strings.Join(ControllerNames(), ", "), nearest.Suggestion(name, ControllerNames()))
		}
	}
	var rows []Controller
	for _, c := range Controllers {
		if slices.Contains(names, c.Name) {
			rows = append(rows, c)
		}
	}
	return rows, nil
}

// OrDefault returns its argument, or the default controllers if the argument is nil. An empty list
// that is not nil means no controllers.
func OrDefault(controllers []Controller) []Controller {
	if controllers != nil {
		return controllers
	}
	controllers, _ = ControllersNamed() // there is no error, because the table contains the default controllers
	return controllers
}

// Known returns those of the given controllers that are in the table [Controllers]. If such a
// controller is under test, the control plane must not run it too. The result is never nil.
func Known(controllers []Controller) []Controller {
	known := []Controller{}
	for _, c := range controllers {
		if slices.Contains(ControllerNames(), c.Name) {
			known = append(known, c)
		}
	}
	return known
}

// NamesOf returns the names of the given controllers.
func NamesOf(controllers []Controller) []string {
	names := make([]string, 0, len(controllers))
	for _, c := range controllers {
		names = append(names, c.Name)
	}
	return names
}

// ControllerNames returns the names of all controllers that can be under test.
func ControllerNames() []string { return NamesOf(Controllers) }

// Watched returns the kinds that at least one of the controllers has in its informer cache. The
// result is sorted as the table [Kinds], and contains no kind twice.
func Watched(controllers []Controller) []Kind {
	return kindsIn(controllers, func(c Controller) []string { return c.Watches })
}

// Observed returns the kinds whose objects a run must record: those that one of the controllers
// watches or writes. The result is sorted as the table [Kinds], and contains no kind twice.
func Observed(controllers []Controller) []Kind {
	return kindsIn(controllers, func(c Controller) []string { return slices.Concat(c.Watches, c.Writes) })
}

// kindsIn returns the kinds that at least one of the controllers names. The function namesOf
// returns the names of kinds in one controller, such as its field Watches. Kinds without a row in
// the table [Kinds] are omitted.
func kindsIn(controllers []Controller, namesOf func(Controller) []string) []Kind {
	var kinds []Kind
	for _, k := range Kinds {
		if slices.ContainsFunc(controllers, func(c Controller) bool { return slices.Contains(namesOf(c), k.Name) }) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}
