package library

import "github.com/kube-gauntlet/gauntlet/harness/mutant"

// election is the path of the source file of the leader election.
const election = "controllers/manager/election.go"

// managers are the mutants of the controller manager.
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
		Description: "A leader does not release its lease when it is terminated.",
		Edits:       []mutant.Edit{edit(election, `if err := release(releasing, lock); err != nil {`, `if err := release(releasing, lock); err != nil && lock == nil {`), edit(election, `	if record.HolderIdentity != lock.Identity() {`, `	if record.HolderIdentity != "" {`)},
		Scenarios:   []string{"handover"},
		Checks:      []string{"converged"},
	},
}
