// Package check decides from the records of a history whether the subject kept its
// guarantees.
//
// Each check defends one guarantee, which the table All names. A check is a pure
// function of a history, so a verdict can be recomputed from a saved run.
//
// # What a check may conclude
//
// A controller acts on its caches, which receive events late and in separate streams.
// So no check compares a write with the state in etcd at that time. A check fails a
// write only if no cached version that the controller may have acted on justifies it.
//
// The model (model.go) holds for each process of the subject:
//   - the objects in its caches, from delivered lists and events (model_view.go)
//   - for each owner, the calls whose effect it has not observed (model_owner_state.go)
//   - for each Deployment, the versions that a decision may date from (model_rollout.go)
//   - for each Service, its recent versions and those of its Endpoints (model_publication.go)
//
// Where the history allows several readings, a check takes the one in favor of the
// subject. A missed bug costs one finding. A false alarm costs the trust in all findings.
//
// Two rules bound how late a subject may be. The constant lag bounds the delay between
// an event and the reaction. And a subject that has sent nothing for a while, with no
// call in flight, has no sync in progress (model_process.go).
//
// A check that cannot conclude returns unknown, never pass. That happens after a gap in
// the records, in a history without its end, and when the checker panicked.
//
// # Files
//
//   - check_<id>.go: one check, beginning with its row in All.
//   - model.go: the types of the state that checkers read; model_*.go: how that
//     state follows from the records. Package objects decodes the objects.
//   - known.go: the known upstream issues; known_<slug>.go: how one of them is
//     recognized.
//   - runner.go: the loop that runs the checkers; check.go: the table of all.
//
// A test (convention_test.go) keeps them apart: the model uses no check and no
// known issue, and no check uses another.
//
// The package knows the controllers' kinds and guarantees. It does not depend on
// clusters, clients or processes, and has no clock.
package check
