// Package history defines the record of one run, and writes and reads it. A history is
// an append-only file with one JSON record per line.
//
// Two independent sources write records:
//
// - The observer records every committed version of every relevant object. It follows etcd, or watches the API server if etcd is not reachable.
// - The fault proxy records what the subject sees and does: every request, every response, every list and every watch event.
//
// Both sources together show, for each write of the subject, which versions the subject
// could have seen. Further records come from the run itself: faults, workload steps,
// processes and phases.
//
// # Order
//
// Records are in the order in which their writers appended them. The proxy records a
// response or a watch event before it delivers it to the subject. It records a request
// before it forwards the request to the API server. Therefore every action that the
// subject took because of a delivery follows that delivery in the file. A check may
// assume that the subject could have seen every list, event and response that precedes a
// request in the file. A few of them may not have arrived yet, but none that arrived is
// missing.
//
// Commits arrive over a separate watch. The commit record of a version may precede or
// follow the response or delivery that carries the same version. Resource versions order the
// commits of all resources totally; positions in the file do not.
//
// The package does not depend on any controller and decides no verdict; see package
// check.
package history
