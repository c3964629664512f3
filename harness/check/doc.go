// Package check judges histories. Each check defends one guarantee of the
// subject, named in one sentence in the table All; it is a pure function of a
// history, so that a verdict can be recomputed from a saved run.
//
// # How a check may judge
//
// A controller acts on what it was told, late and in an order of its own. So no
// check asks whether a write was right by the truth; it asks whether some view
// that the subject could have had called for it. The model (model.go) keeps, for
// each process of the subject, what has been delivered to it (model_view.go) and, for
// each owner, the calls that it has not seen the effect of (model_owner_state.go); for each
// Deployment, the versions and the states of its ReplicaSets from which a
// decision may date (model_rollout.go); for each Service, how it and its Endpoints
// stood (model_publication.go). Where the history leaves room, every check takes
// the reading that favours the subject: a broken controller that it misses costs one catch, a correct one
// that it accuses costs the worth of all the others.
//
// How late a subject may be is bounded by one constant, lag, and by silence: a
// subject that has sent nothing for a while, and has nothing in flight, is not
// in the middle of anything (model_process.go).
//
// What a check cannot conclude is unknown, never a pass: after a gap in what a
// witness saw, in a history without its end, or where the judge itself failed.
//
// # Files
//
//   - check_<id>.go: one check, beginning with its row in All.
//   - model.go: the types of the state that checkers read; model_*.go: how that
//     state follows from the records, and the decoded objects.
//   - known.go: the known upstream issues; known_<slug>.go: how one of them is
//     recognized.
//   - runner.go: the loop that runs the checkers; check.go: the table of all.
//
// A test (convention_test.go) keeps them apart: the model uses no check and no
// known issue, and no check uses another.
//
// The package knows the controllers' kinds and guarantees. It knows nothing of
// clusters, clients and processes, and has no clock.
package check
