package library

import "github.com/kube-gauntlet/gauntlet/harness/mutant"

// election is the path of the source file with the leader election.
const election = "controllers/manager/election.go"

// managers has the mutants of our controller manager.
var managers = []mutant.Mutant{
	{
		ID: "own-no-lease", Base: mutant.Ours,
		Description: "Every replica runs its controllers, also without the lease.",
		Edits: []mutant.Edit{edit(election, `	select {
	case <-ctx.Done():
	case leading := <-elected:
`, `	at := make(chan context.Context, 1)
	at <- ctx
	select {
	case <-ctx.Done():
	case leading := <-at:
`)},
		Scenarios: []string{"failover", "triggers"},
		Checks:    []string{"lease-holder-writes"},
	},
	{
		ID: "own-lease-lost", Base: mutant.Ours,
		Description: "A leader continues after it has lost its lease.",
		Edits:       []mutant.Edit{edit(election, `workErr := work(leading, ctx.Done())`, `workErr := work(context.WithoutCancel(leading), ctx.Done())`)},
		Scenarios:   []string{"two-leaders"},
		Checks:      []string{"lease-holder-writes"},
	},
	{
		ID: "own-lease-kept", Base: mutant.Ours,
		Description:        "A leader does not release its lease when it is terminated.",
		UnobservableReason: "upstream keeps the lease by default, and no guarantee limits the time until another replica takes over; a test of package manager checks the release",
	},
}
